// Facts about processes from /proc, and handles that never refer to another process.
#pragma once

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "util/fd.hpp"

namespace dlock {

enum class Below { no, yes, unknown };  // unknown: /proc does not show it

/// Whether `pid` is a process below this one.
Below below_us(pid_t pid);
/// Whether this one is below `pid`.  The kernel reports 0 for a process of another pid namespace.
Below above_us(pid_t pid);

namespace proc {

/// Needs no heap: a walk must work when no memory is left.
using Path = std::array<char, 64>;

template <class... Numbers>
Path path_of(const char* format, Numbers... numbers) {
  Path out{};
  std::snprintf(out.data(), out.size(), format, numbers...);
  return out;
}

Fd open_to_read(const Path& path);

/// Calls `use` with each number in a file of numbers and spaces.
template <class Use>
void read_numbers(const Path& path, Use use) {
  const Fd fd = open_to_read(path);
  std::array<char, 4'096> buffer;
  pid_t number = 0;
  for (;;) {
    const ssize_t got = fd ? read(fd.get(), buffer.data(), buffer.size()) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
      if (c >= '0' && c <= '9') {
        number = number * 10 + (c - '0');
      } else if (number > 0) {
        use(std::exchange(number, 0));
      }
    }
  }
  if (number > 0) use(number);
}

/// Calls `use` with each number that is the name of an entry of a directory.
template <class Use>
void read_directory(const Path& path, Use use) {
  const Fd fd = open_to_read(path);
  alignas(dirent64) std::array<char, 4'096> buffer;
  for (;;) {
    const long got = fd ? syscall(SYS_getdents64, fd.get(), buffer.data(), buffer.size()) : 0;
    if (got <= 0) return;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      pid_t number = 0;
      const char* const end = entry->d_name + std::strlen(entry->d_name);
      if (std::from_chars(entry->d_name, end, number).ptr == end && number > 0) use(number);
    }
  }
}

/// None if /proc does not show it.
std::optional<pid_t> parent_of(pid_t pid);
/// Whether no thread of the process can run, or /proc shows none: it is stopped, or has ended.
bool is_stopped(pid_t pid);

/// Whether the kernel lists the children of threads; it may have been built without these lists.
bool has_children();

/// Calls `use` with each child of a process.
template <class Use>
void read_children(pid_t pid, Use use) {
  if (!has_children()) {
    return read_directory(Path{"/proc"}, [&](pid_t other) {
      if (parent_of(other) == pid) use(other);
    });
  }
  read_directory(path_of("/proc/%d/task", pid), [&](pid_t task) {
    read_numbers(path_of("/proc/%d/task/%d/children", pid, task), use);
  });
}

/// Whether /proc is mounted and shows the pid namespace of this process.
bool is_ours();

/// Up to 15 bytes, not to be trusted; "?" if it is not known.
std::string name_of(pid_t pid);

/// Readable when the last thread of the process has ended.  None, with errno set, if there is no
/// such process (ESRCH), no descriptor, or no pidfd in this kernel (before Linux 5.3).
Fd pidfd_of(pid_t pid);
bool has_ended(const Fd& pidfd);
/// False, with errno set, if the kernel refuses.
bool send(const Fd& pidfd, int sig);

}  // namespace proc
}  // namespace dlock
