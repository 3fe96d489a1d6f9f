#include "backends/file/watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

namespace dlock::file {
namespace {

// An open file that is unlinked or renamed over causes IN_ATTRIB, as its link count changes.  For a
// directory, IN_ATTRIB would also be caused by each chmod inside.
std::uint32_t mask_of(Watch::For what) {
  switch (what) {
    case Watch::For::replaced:
      return IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
    case Watch::For::replaced_or_written:
      return IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_MODIFY;
    case Watch::For::moved_directory:
      return IN_MOVE_SELF | IN_DELETE_SELF;
    case Watch::For::deleted_in:
      return IN_DELETE;
  }
  return 0;
}

}  // namespace

bool Watch::add(int fd, For what) {
  if (!inotify_) inotify_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_) return false;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int watch = inotify_add_watch(inotify_.get(), path.c_str(), mask_of(what));
  if (watch < 0) return false;
  watches_.push_back(watch);
  return true;
}

void Watch::drain() {
  std::array<char, 4'096> buffer;
  while (inotify_ && ::read(inotify_.get(), buffer.data(), buffer.size()) > 0) {
  }
}

void Watch::clear() {
  for (const int watch : watches_) inotify_rm_watch(inotify_.get(), watch);
  watches_.clear();
  drain();
}

}  // namespace dlock::file
