// The end of a lock under which a job was done.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/zookeeper/session.hpp"
#include "core/records.hpp"

namespace dlock::zookeeper {

/// Writes a mark and deletes the node that has the lock, in one request: the steps of
/// Lease::complete().
class Completing {
 public:
  /// `queued`: the node that has the lock.
  Completing(std::shared_ptr<const Place> place, const RecordName& name, std::string text,
             std::string queued);

  /// Does both or neither.
  Call ask(Session& session) const;
  /// Whether `call`, made by ask(), has failed because the node that had the lock is gone.
  static bool lock_is_gone(const Reply& call);
  /// After another failure: ok if ask() may succeed now, else why the mark cannot be written.
  Result<void> adapt(Session& session, const Call& call, Deadline deadline, Cancel cancel);
  /// Whether there is a mark by this owner, even if its time is over.
  Result<bool> is_done_by(std::string_view owner_id, Millis ttl, Deadline deadline,
                          Cancel cancel) const;

 private:
  std::vector<Step> steps() const;

  const std::shared_ptr<const Place> place_;
  const std::string path_;  // of the mark
  const std::string text_;
  const std::string queued_;
  bool exists_ = false;  // there is a mark to be replaced
};

}  // namespace dlock::zookeeper
