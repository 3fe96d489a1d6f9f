// File descriptors: one that closes itself, and writing to one.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string_view>
#include <utility>

namespace dlock {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

namespace util {

/// Puts /dev/null, which cannot be written to, under those of the standard descriptors that are
/// closed: or a socket could land there, and get what is meant for people.
void occupy_standard_descriptors();

/// Writes the whole of `text`; false, with errno set, if that fails in the middle.
bool write_all(int fd, std::string_view text);

/// The descriptor that /dev/fd/3, /proc/self/fd/3, /dev/stdout or /dev/stderr stands for.
std::optional<int> descriptor_named_by(std::string_view path);

/// Whether both are of one file, of those that there are at present.
inline bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Whether the file is one of proc(5).  The text of a link there need not be where it leads.
bool is_in_proc(int fd);

}  // namespace util

}  // namespace dlock
