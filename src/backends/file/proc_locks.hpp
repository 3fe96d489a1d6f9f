// Which files are flocked, and who waits for them, as the kernel tells.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlock::file {

/// One flock(2) line of /proc/locks.  Locks taken in pid namespaces that this process cannot see
/// are not there, nor (outside the first namespace) those whose taker has ended.
struct FlockLine {
  pid_t pid = 0;  // who called flock(2); others may hold the descriptor by now
  bool exclusive = false;
  bool waiting = false;
  unsigned major = 0;
  unsigned minor = 0;
  std::uint64_t inode = 0;

  bool operator==(const FlockLine&) const = default;
};

/// Lines of other kinds and lines that are not understood are left out.
std::vector<FlockLine> parse_proc_locks(std::string_view text);

/// Empty where there is no /proc.
std::vector<FlockLine> read_proc_locks();

/// The different lines about one file.
std::vector<FlockLine> lines_of(const std::vector<FlockLine>& lines, dev_t device, ino_t inode);

}  // namespace dlock::file
