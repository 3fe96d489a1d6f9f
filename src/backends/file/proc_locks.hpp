// The files that are flocked, and the processes that wait for them, by /proc/locks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlock::file {

/// One flock(2) line of /proc/locks.  The kernel leaves out locks that were taken in pid namespaces
/// which this process cannot see, and (outside the first namespace) locks whose taker has ended.
struct FlockLine {
  pid_t pid = 0;  // the process that called flock(2); by now another one may have the descriptor
  bool exclusive = false;
  bool waiting = false;
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;

  bool operator==(const FlockLine&) const = default;
};

/// Leaves out lines of other kinds and lines that it does not understand.
std::vector<FlockLine> parse_proc_locks(std::string_view text);

/// Empty where there is no /proc.
std::vector<FlockLine> read_proc_locks();

/// The different lines about one file.
std::vector<FlockLine> lines_of(const std::vector<FlockLine>& lines, dev_t device, ino_t inode);

}  // namespace dlock::file
