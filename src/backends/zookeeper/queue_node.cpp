// One node, made once.  create and getChildren go out together: two requests, one round trip.  If
// the answer to a create is lost, it is not known whether there is a node, and a second one would
// wait for the first for ever.  So the next question, to any of the servers, is sync and the
// children, among which a node of ours is known by its uuid.  It counts only if it lives with our
// session: one of an earlier session can vanish at any moment, and is deleted.  A create that was
// sent to another server before cannot come late: the session has moved (ZSESSIONMOVED).
#include "backends/zookeeper/queue_node.hpp"

#include <array>

#include "backends/zookeeper/parents.hpp"
#include "backends/zookeeper/queue.hpp"
#include "core/lock_record.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

constexpr unsigned kMostCreates = 20;  // until something else must be wrong

Result<void> remove_node(Session& session, const std::string& path, Deadline deadline,
                         Cancel cancel) {
  const auto gone = session.persist([&] { return std::array{remove(session.handle(), path, -1)}; },
                                    deadline, cancel);
  return gone ? Result<void>() : gone.error();
}

}  // namespace

QueueNode::QueueNode(const Place& place, const Request& request)
    : place_(place),
      lock_(place.path_of(request.key)),
      uuid_(uuid_for(request.owner.id)),
      prefix_(path_of(node_prefix(place.style, request.claim(), uuid_))),
      record_(format_lock_record(request)) {}

void QueueNode::doubt() {
  name_.clear();
  in_doubt_ = true;
}

void QueueNode::forget() {
  name_.clear();
  in_doubt_ = false;
}

Error QueueNode::vanishes() const {
  return {Errc::unreachable, place_.shown + ": cannot create a node in " + util::printable(lock_) +
                                 "; it is deleted again and again"};
}

Result<void> QueueNode::remove(Session& session, Deadline deadline, Cancel cancel) const {
  return remove_node(session, path(), deadline, cancel);
}

Result<std::optional<std::vector<std::string>>> QueueNode::join(Session& session, Deadline deadline,
                                                                Cancel cancel) {
  using Children = std::optional<std::vector<std::string>>;
  for (unsigned creates = 0; creates < kMostCreates; ++creates) {
    if (in_doubt_) {
      if (auto ok = find(session, deadline, cancel); !ok) return ok.error();
    }
    if (!name_.empty()) return Children();
    in_doubt_ = true;
    const bool auth = !place_.auth.empty();
    const Call made =
        create(session.handle(), prefix_, record_, NodeKind::ephemeral_sequential, auth);
    const Call listed = get_children(session.handle(), lock_, Watch::no);
    if (auto ok = session.wait({made, listed}, deadline, cancel); !ok) return ok.error();
    if (made->ok()) {
      in_doubt_ = false;
      name_ = made->text.substr(lock_.size() + 1);
      fence_ = static_cast<std::uint64_t>(made->stat.czxid);
      session.clock().proved(made->sent, Clock::now());
      return listed->ok() ? Children(listed->names) : Children();
    }
    if (session.expired()) return session.silent();
    if (made->in_doubt() || made->code == ZSESSIONMOVED) continue;
    in_doubt_ = false;
    if (made->code != ZNONODE) return session.refused(made, "create a node in " + lock_);
    if (auto ok = make_parents(session, place_, lock_, deadline, cancel); !ok) return ok.error();
  }
  return vanishes();
}

// Looks for a node that a create may have made before its answer was lost.
Result<void> QueueNode::find(Session& session, Deadline deadline, Cancel cancel) {
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), lock_),
                          get_children(session.handle(), lock_, Watch::no)};
      },
      deadline, cancel);
  if (!answers) return answers.error();
  const Call& listed = answers.value()[1];
  if (!listed->ok() && listed->code != ZNONODE) return session.refused(listed, "list " + lock_);
  for (const NodeName& node : queue_of(listed->names)) {
    if (node.uuid != uuid_) continue;
    const std::string path = path_of(node.name);
    const auto seen = session.persist(
        [&] { return std::array{exists(session.handle(), path, Watch::no)}; }, deadline, cancel);
    if (!seen) return seen.error();
    const Call& found = seen.value()[0];
    if (found->code == ZNONODE) continue;
    if (!found->ok()) return session.refused(found, "look at " + path);
    if (found->stat.ephemeralOwner == session.id() && name_.empty()) {
      name_ = node.name;
      fence_ = static_cast<std::uint64_t>(found->stat.czxid);
      continue;
    }
    if (auto ok = remove_node(session, path, deadline, cancel); !ok) return ok.error();
  }
  in_doubt_ = false;
  return {};
}

}  // namespace dlock::zookeeper
