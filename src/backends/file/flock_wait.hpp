// A blocking flock(2) that can be given up.
#pragma once

#include <sys/types.h>

#include "backends/file/lock_file.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// Waits until the kernel grants a lock.  Destroying it gives the wait up; what was granted
/// meanwhile is then still held by the descriptor.
class FlockWait {
 public:
  enum class End { granted, cancelled, timed_out, disturbed };

  FlockWait() = default;
  FlockWait(const FlockWait&) = delete;
  FlockWait& operator=(const FlockWait&) = delete;
  ~FlockWait();

  /// Begins to wait for `file` of `place`.  `for_pid` is shown in the name of the process that
  /// waits; its own number is written into the registration that has this descriptor, if it is not
  /// -1. Both descriptors must stay open for as long as this waits.
  Result<void> start(const Place& place, const LockFile& file, int operation, std::int64_t for_pid,
                     int registration);

  /// Disturbed: `watch_fd` is readable, and nothing is lost; or the process that waits was killed,
  /// and another one waits at the end of the queue.  wait() may be called again.
  Result<End> wait(Deadline deadline, Cancel cancel, int watch_fd);

  /// Of the process that waits, or has waited: it is the one that has called flock(2).
  pid_t pid() const { return pid_; }

 private:
  Result<void> start_helper();
  void stop_helper();

  std::string path_;  // for messages
  int file_ = -1;
  int operation_ = 0;
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
