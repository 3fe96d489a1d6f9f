// The number that a client takes of a slots lock: a node that lives with its session.
#pragma once

#include <string>

#include "backends/zookeeper/session.hpp"
#include "core/result.hpp"

namespace dlock::zookeeper {

class SlotNumber {
 public:
  /// `lock`: its path; `uuid`: that of the node in the queue; `auth`: as for create().
  SlotNumber(std::string lock, std::string uuid, bool auth);

  /// 0: none.
  unsigned number() const { return number_; }
  /// Of the node; "" without a number.
  std::string path() const;

  /// Creates the node.  False: another client has it.  After an error it may be in doubt whether
  /// there is a node.
  Result<bool> take(Session& session, unsigned number, Deadline deadline, Cancel cancel);

  bool in_doubt() const { return tried_ != 0; }
  /// Finds out whether the node that was in doubt is there, and ours.
  Result<bool> settle(Session& session, Deadline deadline, Cancel cancel);

  /// The session has ended, and the node with it.
  void forget() { number_ = tried_ = 0; }

 private:
  std::string path_of(unsigned number) const;

  const std::string lock_;
  const std::string uuid_;
  const bool auth_;
  unsigned number_ = 0;
  unsigned tried_ = 0;  // there may be a node of this number
};

}  // namespace dlock::zookeeper
