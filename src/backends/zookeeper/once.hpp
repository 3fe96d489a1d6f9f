// What `dlock once` remembers: persistent nodes beside those of the locks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/session.hpp"
#include "core/backend.hpp"

namespace dlock::zookeeper {

// See Backend.  The session is open.

Result<std::optional<Mark>> find_mark(Session& session, const Place& place, const MarkName& name,
                                      Deadline deadline);
/// Removes some of the marks whose time is over, too.
Result<void> prepare_marks(Session& session, const Place& place, std::string_view key,
                           Deadline deadline);
Result<std::vector<Mark>> list_marks(Session& session, const Place& place, std::string_view prefix,
                                     Deadline deadline);
Result<bool> forget_mark(Session& session, const Place& place, const MarkName& name,
                         Deadline deadline);

/// A node beside the marks that dlock makes with the first of them.
std::string marks_clock(const Place& place);

/// The steps of Lease::complete().
class Completing {
 public:
  /// `record`: what the mark is to say.  `queued`: the node that has the lock.
  Completing(std::shared_ptr<const Place> place, const MarkName& name, std::string record,
             std::string queued);

  /// Writes the mark and deletes the node that has the lock, or does neither.
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
  const std::string record_;
  const std::string queued_;
  bool exists_ = false;  // there is a mark to be replaced
};

}  // namespace dlock::zookeeper
