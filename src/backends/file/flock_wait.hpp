// A blocking flock(2) that can be given up.
#pragma once

#include <sys/types.h>

#include <vector>

#include "backends/file/lock_file.hpp"
#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// Waits until the kernel grants one of several files.  Destroying it gives the wait up; a lock
/// that was granted to a file meanwhile is then still held by its descriptor.
class FlockWait {
 public:
  enum class End { granted, cancelled, timed_out, disturbed };

  /// `for_pid` is shown to others as the process that waits.
  explicit FlockWait(std::int64_t for_pid) : for_pid_(for_pid) {}
  FlockWait(const FlockWait&) = delete;
  FlockWait& operator=(const FlockWait&) = delete;
  ~FlockWait();

  /// Begins to wait for `file`, which must outlive this.
  Result<void> add(const LockFile& file, int operation);

  /// Granted: `which` is the index of the file, in the order of add(), and `by` its locked_by.
  /// Disturbed: `watch_fd` is readable; wait() may be called again and has lost nothing.
  struct Outcome {
    End end = End::timed_out;
    std::size_t which = 0;
    pid_t by = 0;
  };
  Result<Outcome> wait(Deadline deadline, Cancel cancel, int watch_fd);

  /// Gives up all waits but that of one granted file, whose `locked_by` remains a known process to
  /// readers of /proc/locks until this is destroyed.
  void keep_only(std::size_t which);

 private:
  struct Helper {
    pid_t pid = 0;
    Fd process;  // pidfd
    Fd report;   // of a pipe: one byte with the outcome, or its end if the helper was killed
  };
  static void end(const std::vector<Helper>& helpers);

  std::int64_t for_pid_;
  std::vector<Helper> helpers_;
};

/// Waits for one file and sets its `locked_by`.
Result<FlockWait::End> wait_flock(LockFile& file, int operation, std::int64_t for_pid,
                                  Deadline deadline, Cancel cancel);

}  // namespace dlock::file
