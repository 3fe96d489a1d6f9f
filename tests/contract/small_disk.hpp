// A disk that can be full, or read-only.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "util/fd.hpp"

namespace dlock::test {

/// Mounted on a new directory, if this user may mount.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    ::mkdir(path.c_str(), 0700);
    mounted_ = ::mount("none", path.c_str(), "tmpfs", 0, "size=64k,mode=0700") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  void fill() {
    const Fd fd(::open(filler().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(4'096, 'x');
    while (::write(fd.get(), block.data(), block.size()) > 0) {
    }
  }
  void make_room() { ::unlink(filler().c_str()); }
  bool read_only() {
    return ::mount("none", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  std::string filler() const { return path_ + "/~filler"; }

  std::string path_;
  bool mounted_ = false;
};

}  // namespace dlock::test
