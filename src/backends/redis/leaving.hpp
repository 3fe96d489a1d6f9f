// How a waiter or a holder leaves the servers for good, and what the servers say to a holder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/quorum.hpp"
#include "backends/redis/requests.hpp"
#include "backends/redis/votes.hpp"

namespace dlock::redis {

/// What the servers said to a renewal or a release.
class HolderAnswers {
 public:
  /// Of the lock `key`.
  HolderAnswers(const Cluster& cluster, std::string key)
      : cluster_(cluster),
        key_(std::move(key)),
        votes_(cluster.size(), quorum(cluster.size())),
        errors_(cluster.size()) {}

  void put_error(unsigned server, const Error& error);
  void put_yes(unsigned server) { votes_.put(server, Votes::Vote::yes); }
  /// It is not ours.  `why`: of a force-release, or "".  `is_free`: nor another's.
  void put_no(unsigned server, const std::string& why, bool is_free);
  void cancel() { is_cancelled_ = true; }

  const Votes& votes() const { return votes_; }
  const std::vector<std::optional<Error>>& errors() const { return errors_; }

  /// Ok if enough servers said that it is ours, Errc::lost if too many said that it is not;
  /// Errc::unreachable, cancelled.
  Result<void> verdict() const;

 private:
  Error no_majority() const;
  Error lost() const;

  const Cluster& cluster_;
  const std::string key_;
  Votes votes_;
  std::vector<std::optional<Error>> errors_;
  std::string why_;
  bool is_free_ = false;
  bool is_cancelled_ = false;
};

/// Who leaves, and what.
struct Leaver {
  WaiterId waiter;
  unsigned round = 0;         // its last one
  unsigned queue_server = 0;  // in whose queue it has waited
  Request request;
  std::shared_ptr<AskedOfEach> asked;
};

/// Takes from all servers that were asked something what the waiter has got, and its place in the
/// queue.  Where a request may still arrive, it will get nothing.  Of several servers a majority is
/// waited for, without which nobody else gets the lock; and for at most a second the queue server,
/// even if it is known to be silent: those that sleep in its queue hear of it by that alone, else
/// up to three seconds later.  The others have `moment` after that, if they are not known to be
/// slow.
HolderAnswers leave_for_good(Cluster& cluster, const Leaver& leaver, Millis moment,
                             Deadline deadline, Cancel cancel);

}  // namespace dlock::redis
