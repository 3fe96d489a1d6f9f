// The mark is written and the node in the queue is deleted in one request, which does nothing if
// that node is gone.  So only the holder of the lock writes a mark, however late its request
// arrives.  The mark comes first: a server that carries out one after the other wakes the next
// holder when the mark can be read.  If a reply is lost, the request is repeated, and if the node
// in the queue is gone then, the mark tells whether the first request has deleted it.
#include "backends/zookeeper/completing.hpp"

#include <array>
#include <utility>

#include "backends/zookeeper/parents.hpp"
#include "backends/zookeeper/zookeeper_records.hpp"
#include "core/mark.hpp"

namespace dlock::zookeeper {

Completing::Completing(std::shared_ptr<const Place> place, const RecordName& name, std::string text,
                       std::string queued)
    : place_(std::move(place)),
      path_(record_path(*place_, name)),
      text_(std::move(text)),
      queued_(std::move(queued)) {}

std::vector<Step> Completing::steps() const {
  return {{Step::Kind::check, queued_},
          {Step::Kind::set, marks_folder(*place_)},
          {exists_ ? Step::Kind::set : Step::Kind::create, path_, text_},
          {Step::Kind::remove, queued_}};
}

Call Completing::ask(Session& session) const {
  return all_or_none(session.handle(), steps(), !place_->auth.empty());
}

bool Completing::lock_is_gone(const Reply& call) { return call.failed_at(0, ZNONODE); }

Result<void> Completing::adapt(Session& session, const Call& call, Deadline deadline,
                               Cancel cancel) {
  if (call->failed_at(1, ZNONODE)) {
    return make_persistent(session, *place_, marks_clock(*place_), deadline, cancel);
  }
  if (call->failed_at(2, exists_ ? ZNONODE : ZNODEEXISTS)) {
    exists_ = !exists_;
    return {};
  }
  std::string doing = "write " + path_;
  const std::vector<Step> steps = this->steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (call->failed_at(i, call->code)) doing = shown(steps[i]);
  }
  return session.refused(call, doing);
}

// After the sync, which the leader answers: a server may be behind the others, and may make a new
// session without asking them (localSessionsEnabled).
Result<bool> Completing::is_done_by(std::string_view owner_id, Millis ttl, Deadline deadline,
                                    Cancel cancel) const {
  Session session(place_, ttl);
  if (auto ok = session.open(deadline, cancel); !ok) return ok.error();
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), path_), get(session.handle(), path_, Watch::no)};
      },
      deadline, cancel);
  if (!answers) return answers.error();
  const Call& got = answers.value()[1];
  session.close();
  if (!got->ok() && got->code != ZNONODE) return session.refused(got, "read " + path_);
  return got->ok() && is_mark_by(got->text, owner_id);
}

}  // namespace dlock::zookeeper
