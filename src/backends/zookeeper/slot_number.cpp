// Owner.  A session belongs to one acquire(), so a node is ours if it lives with our session.  One
//         of an earlier session of ours counts as another client's: the servers delete it.  Its
//         data is the uuid of the holder's node in the queue, for commands that show the lock.
// Doubt.  As with the node in the queue (queue_node.cpp): a create whose answer was lost cannot be
//         carried out after a sync over the next connection.
#include "backends/zookeeper/slot_number.hpp"

#include <array>
#include <utility>

#include "backends/zookeeper/names.hpp"

namespace dlock::zookeeper {

SlotNumber::SlotNumber(std::string lock, std::string uuid, bool auth)
    : lock_(std::move(lock)), uuid_(std::move(uuid)), auth_(auth) {}

std::string SlotNumber::path_of(unsigned number) const { return lock_ + '/' + slot_node(number); }

std::string SlotNumber::path() const { return number_ == 0 ? "" : path_of(number_); }

Result<bool> SlotNumber::take(Session& session, unsigned number, Deadline deadline, Cancel cancel) {
  tried_ = number;
  const std::string path = path_of(number);
  const Call made = create(session.handle(), path, uuid_, NodeKind::ephemeral, auth_);
  if (auto ok = session.wait({made}, deadline, cancel); !ok) return ok.error();
  if (session.expired()) return session.silent();
  if (made->in_doubt() || made->code == ZSESSIONMOVED) return settle(session, deadline, cancel);
  tried_ = 0;
  if (made->ok()) number_ = number;
  if (made->ok() || made->code == ZNODEEXISTS || made->code == ZNONODE) return made->ok();
  return session.refused(made, "create " + path);
}

Result<bool> SlotNumber::settle(Session& session, Deadline deadline, Cancel cancel) {
  const std::string path = path_of(tried_);
  const auto answers = session.persist(
      [&] {
        return std::array{sync(session.handle(), lock_), exists(session.handle(), path, Watch::no)};
      },
      deadline, cancel);
  if (!answers) return answers.error();
  const Call& found = answers.value()[1];
  if (!found->ok() && found->code != ZNONODE) return session.refused(found, "look at " + path);
  if (found->ok() && found->stat.ephemeralOwner == session.id()) number_ = tried_;
  tried_ = 0;
  return number_ != 0;
}

}  // namespace dlock::zookeeper
