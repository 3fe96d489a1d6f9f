// One request on its way to a grant: acquire.cpp has the argument why it is right.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/file/flock_wait.hpp"
#include "backends/file/lock_file.hpp"
#include "backends/file/registration.hpp"
#include "backends/file/slots.hpp"
#include "backends/file/wait_intervals.hpp"
#include "backends/file/watch.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// To be asked once.
class Acquisition {
 public:
  using MaybeLease = Result<std::optional<std::unique_ptr<Lease>>>;

  Acquisition(std::shared_ptr<const Place> place, const Request& request, const Wait& wait,
              const WaitIntervals& intervals)
      : place_(std::move(place)), request_(request), wait_(wait), intervals_(intervals) {}

  /// None: the directory is not in its place any more, and nothing is held in it.
  MaybeLease run();

 private:
  // ready: go on.  again: the file is not in its place any more.  moved: nor is the directory.
  enum class Step { ready, again, moved };

  // acquire.cpp
  MaybeLease exclusive();
  MaybeLease seated();
  MaybeLease take_seat(std::vector<Fd>& taken);
  MaybeLease grant(std::vector<LockFile> locks, std::optional<unsigned> slot);
  Result<std::optional<std::uint64_t>> write_fence(LockFile& main);
  Record record() const;

  // waiting.cpp
  bool may_wait() const { return wait_.until > Clock::now(); }
  Result<Step> pass_gate();
  Result<bool> try_main(int operation);
  Result<Step> take_main(int operation);
  Result<void> begin_to_wait();
  Result<Step> wait_for_lock(LockFile& file, int operation);
  Result<void> try_without_gate();
  Result<Step> wait_for_slot(const std::vector<Fd>& taken);
  using Poll = std::function<Result<FlockWait::End>(Deadline)>;
  Result<Step> wait_for(const LockFile& file, const Poll& poll);
  Result<Step> where(const LockFile& file) const;
  Result<void> tell_of_holders();
  Error busy() const;
  Error cancelled() const;

  std::shared_ptr<const Place> place_;
  const Request& request_;
  const Wait& wait_;
  const WaitIntervals& intervals_;
  std::unique_ptr<Registration> registration_;  // before the locks: it goes after them
  std::optional<LockFile> gate_;
  std::optional<LockFile> main_;
  std::unique_ptr<Lease> early_;  // that was granted without the gate
  std::optional<RoomForSlots> room_;
  Deadline woken_{};    // when a slot was last said to be free
  unsigned wakes_ = 0;  // for nothing, one soon after the other
  std::optional<LockInfo> told_;
  std::uint64_t told_fence_ = 0;  // the newest one when it was looked
  Watch watch_;
};

}  // namespace dlock::file
