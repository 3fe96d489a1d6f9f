// Our node in the queue of a lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/zookeeper/place.hpp"
#include "backends/zookeeper/session.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

class QueueNode {
 public:
  QueueNode(const Place& place, const Request& request);

  /// "": there is none, or it is not known.
  const std::string& name() const { return name_; }
  /// Of the lock, of this node, and of any other child of the lock.
  const std::string& lock() const { return lock_; }
  std::string path() const { return path_of(name_); }
  std::string path_of(std::string_view child) const { return lock_ + '/' + std::string(child); }
  /// By which the node is known, in its name.
  const std::string& uuid() const { return uuid_; }
  /// The fencing number: the transaction that made the node.
  std::uint64_t fence() const { return fence_; }

  /// There may be a node whose name is not known: the answer to a create was lost.
  bool in_doubt() const { return in_doubt_; }
  /// A list of children lacks the node: it was deleted, or a server has left it out of the list,
  /// as one on trial or a hostile one may.
  void doubt();
  /// The session has ended, and the node with it.
  void forget();

  /// Makes the node, and those above it where they are missing.  Returns the children of the lock,
  /// listed after that, where they were asked for on the way.
  Result<std::optional<std::vector<std::string>>> join(Session& session, Deadline deadline,
                                                       Cancel cancel);
  /// Ok once the servers have answered: the node is deleted, or they refuse to delete it, and the
  /// end of the session will.
  Result<void> remove(Session& session, Deadline deadline, Cancel cancel) const;

  /// The node is deleted again and again.
  Error vanishes() const;

 private:
  Result<void> find(Session& session, Deadline deadline, Cancel cancel);

  const Place& place_;
  const std::string lock_;
  const std::string uuid_;
  const std::string prefix_;  // of the path
  const std::string record_;
  bool in_doubt_ = false;
  std::string name_;
  std::uint64_t fence_ = 0;
};

}  // namespace dlock::zookeeper
