// Each lock that is held or waited for has connections of its own.  Those who look share one,
// which is made when it is first needed.
#include "backends/mysql/mysql_backend.hpp"

#include <climits>
#include <functional>
#include <utility>

#include "backends/mysql/acquire.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/kill.hpp"
#include "backends/mysql/lease.hpp"
#include "backends/mysql/mysql_records.hpp"
#include "backends/mysql/pulse.hpp"
#include "backends/mysql/state.hpp"
#include "backends/mysql/statements.hpp"
#include "core/patience.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

using util::in_quotes;

constexpr std::size_t kLongestReason = 4'000;
constexpr unsigned kMostTriesToLook = 10;
constexpr unsigned kInterrupted = 1317;

class MysqlBackend final : public Backend {
 public:
  MysqlBackend(Place place, Method method)
      : place_(std::make_shared<const Place>(std::move(place))), method_(method) {
    // On a cluster, many that write records at once collide again and again.
    const auto say = [this](const std::string& text, Deadline deadline) {
      return ask(
          "", [&](const Statements&) { return text; }, deadline, UINT_MAX);
    };
    records_ = make_records(say, *place_, method_,
                            [this] { return connection_ && connection_->skips_locked(); });
  }

  std::string location() const override { return place_->location; }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    return mysql::acquire(place_, method_, request, wait);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override;
  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override;
  Result<bool> force_release(std::string_view key, std::string_view owner_id, std::string_view why,
                             Deadline deadline) override;
  Result<std::unique_ptr<Lease>> resume(const LockInfo& lock, const LockInfo::Holder& holder,
                                        Millis ttl, Deadline deadline) override;

  Records* records() override { return records_.get(); }

 private:
  // What is asked depends on the server.
  using Text = std::function<std::string(const Statements&)>;
  Result<Reply> ask(std::string_view key, const Text& text, Deadline deadline,
                    unsigned most_tries = kMostTriesToLook);
  Result<std::vector<Party>> parties(std::string_view key, const Text& text, Deadline deadline);
  Statements statements(std::string_view key) const {
    return {method_, place_->prefix, key, marks_on(*connection_)};
  }

  const std::shared_ptr<const Place> place_;
  const Method method_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Records> records_;
};

// What is asked here may be asked twice.  A server that has no connection left may have one in a
// moment.
Result<Reply> MysqlBackend::ask(std::string_view key, const Text& text, Deadline deadline,
                                unsigned most_tries) {
  deadline = std::min(deadline, after(Clock::now(), place_->connect_timeout));
  bool used = connection_ && !connection_->broken();
  for (unsigned tries = 1;; ++tries) {
    if (!connection_ || connection_->broken()) {
      connection_.reset();  // it may have the last one that the server can spare
      auto opened = Connection::open(place_, deadline, Cancel());
      if (!opened && opened.error().is_full && pause_briefly(deadline, Cancel())) continue;
      if (!opened) return opened.error();
      connection_ = std::move(*opened);
    }
    Reply reply = connection_->ask(text(statements(key)), deadline, Cancel());
    if (reply.ok() || reply.code == kNoTable) return reply;
    if (std::exchange(used, false) && connection_->broken() && Clock::now() < deadline) {
      connection_.reset();  // it was closed while nobody used it
      continue;
    }
    // A deadlock with a renewal, say.  On a cluster, a statement that collides with one of another
    // server may end as one that was interrupted.
    const bool passes =
        is_passing(reply.code) || (reply.code == kInterrupted && most_tries > kMostTriesToLook);
    if (passes && tries < most_tries && Clock::now() < deadline) {
      (void)connection_->ask("ROLLBACK", deadline, Cancel());
      if (tries < kMostTriesToLook || pause_briefly(deadline, Cancel())) continue;
    }
    return explain(reply, *place_);
  }
}

// Where there are no tables there are no locks.
Result<std::vector<Party>> MysqlBackend::parties(std::string_view key, const Text& text,
                                                 Deadline deadline) {
  const auto reply = ask(key, text, deadline);
  if (!reply) return reply.error();
  if (!reply.value().ok()) return std::vector<Party>();
  return parties_of(reply.value().answers.back());
}

Result<LockInfo> MysqlBackend::inspect(std::string_view key, Deadline deadline) {
  auto found = parties(
      key, [](const Statements& say) { return say.look(true); }, deadline);
  if (!found) return found.error();
  return State(std::move(*found)).info(std::string(key));
}

Result<std::vector<LockInfo>> MysqlBackend::list(std::string_view prefix, Deadline deadline) {
  auto found = parties(
      "", [&](const Statements& say) { return say.list(prefix); }, deadline);
  if (!found) return found.error();
  std::vector<LockInfo> locks;
  auto& all = found.value();
  for (auto from = all.begin(); from != all.end();) {
    const std::string key = from->name;
    const auto to =
        std::find_if(from, all.end(), [&](const Party& party) { return party.name != key; });
    std::vector<Party> of_key(std::make_move_iterator(from), std::make_move_iterator(to));
    LockInfo info = State(std::move(of_key)).info(key);
    if (!info.holders.empty() || !info.waiters->empty()) locks.push_back(std::move(info));
    from = to;
  }
  return locks;
}

// The row says who did it before the holder can ask, which it does when its connection is closed.
Result<bool> MysqlBackend::force_release(std::string_view key, std::string_view owner_id,
                                         std::string_view why, Deadline deadline) {
  const Text text = [&](const Statements& say) {
    return say.break_grant(owner_id, why.substr(0, kLongestReason));
  };
  const auto broken = ask(key, text, deadline);
  if (!broken) return broken.error();
  const auto& answers = broken.value().answers;
  if (!broken.value().ok() || answers.at(0).affected != 1) return false;
  const Row& sessions = answers.at(1).rows.at(0);
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const auto ended = end_session(*connection_, number(sessions, i), deadline);
    if (ended && ended.value()) continue;
    util::log(util::Level::warning,
              place_->shown +
                  ": may not end the holder's connection, which is another user's: it "
                  "will notice at its next renewal");
    break;
  }
  return true;
}

// If the row is gone, the lease says so when it is used, and says why.  It takes over the
// connection: a process that resumes a lease has nothing else to ask.
Result<std::unique_ptr<Lease>> MysqlBackend::resume(const LockInfo& lock,
                                                    const LockInfo::Holder& holder, Millis ttl,
                                                    Deadline deadline) {
  if (method_ == Method::row) return Backend::resume(lock, holder, ttl, deadline);
  const auto found = parties(
      lock.key, [](const Statements& say) { return say.look(false); }, deadline);
  if (!found) return found.error();
  Grant grant{.request = {lock.key, lock.mode, lock.slots, ttl, holder.owner},
              .fence = holder.fence.value_or(0),
              .slot = holder.slot.value_or(0),
              .resumed = true};
  for (const Party& party : found.value()) {
    if (party.kind != Kind::waiter && party.owner == holder.owner.id) grant.row = party.id;
  }
  return make_lease(place_, method_, std::move(connection_), std::move(grant));
}

}  // namespace

Result<std::string> place(const Target& target) {
  auto found = make_place(target);
  if (!found) return found.error();
  return std::move(found->name);
}

template <Method method>
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  auto place = make_place(target);
  if (!place) return place.error();
  return std::make_unique<MysqlBackend>(std::move(*place), method);
}
template Result<std::unique_ptr<Backend>> open<Method::table>(const Target&, Deadline, Cancel);
template Result<std::unique_ptr<Backend>> open<Method::row>(const Target&, Deadline, Cancel);
template Result<std::unique_ptr<Backend>> open<Method::version>(const Target&, Deadline, Cancel);

std::string schema_of(std::string_view prefix) { return schema(prefix); }

}  // namespace dlock::mysql
