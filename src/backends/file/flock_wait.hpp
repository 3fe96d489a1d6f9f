// A blocking flock(2) that can be given up.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "backends/file/lock_file.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// One call of flock(2).
struct FlockStep {
  int fd = -1;
  int operation = 0;
};

/// Waits until the kernel has granted each of a few steps, one after the other.  Destroying it
/// gives the wait up; what was granted meanwhile is then still held by the descriptors.
class FlockWait {
 public:
  enum class End { granted, cancelled, timed_out };

  FlockWait() = default;
  FlockWait(const FlockWait&) = delete;
  FlockWait& operator=(const FlockWait&) = delete;
  ~FlockWait();

  /// Begins with the first step.  `path` is named in errors.  `for_pid` is shown in the name of the
  /// process that waits; its own number is written into the registration that has this descriptor,
  /// if it is not -1.  All descriptors must stay open for as long as this waits.
  Result<void> start(std::string path, std::span<const FlockStep> steps, std::int64_t for_pid,
                     int registration);

  /// After End::timed_out it may be called again, and nothing is lost.  If the process that waits
  /// is killed, another one waits at the end of the queue.
  Result<End> wait(Deadline deadline, Cancel cancel);

  /// Of the process that waits, or has waited: it is the one that has called flock(2).
  pid_t pid() const { return pid_; }

 private:
  Result<void> start_helper();
  void stop_helper();

  std::string path_;
  std::vector<FlockStep> steps_;
  std::int64_t for_pid_ = 0;
  int registration_ = -1;
  pid_t pid_ = 0;
  Fd process_;  // pidfd
  Fd report_;   // of a pipe: one byte with the outcome, or its end if the process was killed
};

/// Waits for one file and sets its `locked_by`.
Result<FlockWait::End> wait_flock(const Place& place, LockFile& file, int operation,
                                  std::int64_t for_pid, Deadline deadline, Cancel cancel);

}  // namespace dlock::file
