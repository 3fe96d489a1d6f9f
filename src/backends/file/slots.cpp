// A slot is a FIFO, and whoever has flock(2) on it has the slot: the kernel frees it when its
// holder dies.  The FIFO is there for those who wait for any of several slots, which flock(2)
// cannot do.  The holder has it open for writing, they for reading, and poll(2) tells them of two
// things:
//
// Its end, when the last descriptor of the holder is closed.  In the kernel that comes after the
// lock on the same descriptor has gone, so who is woken by it does not come too early.
//
// A byte, which a holder writes after it has unlocked, in case somebody has a copy of its
// descriptor.  A byte that comes late, when the slot is taken again, wakes somebody for nothing.
#include "backends/file/slots.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "backends/file/name.hpp"

namespace dlock::file {
namespace {

Result<LockFile> open_slot(const Place& place, unsigned number, int access) {
  LockFile slot;
  slot.name = slot_name(place.leaf, number);
  while (!slot.fd) {
    slot.fd.reset(::openat(place.fd(), slot.name.c_str(),
                           access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (slot.fd) break;
    const bool is_missing = errno == ENOENT;
    if (is_missing && create(place.fd(), slot.name, Kind::fifo, place.dir->sharing()).done)
      continue;
    if (is_missing && errno == EEXIST) continue;
    return errno_error(path_of(place, slot.name), "cannot open", errno);
  }
  struct stat st {};
  if (::fstat(slot.fd.get(), &st) != 0) {
    return errno_error(path_of(place, slot.name), "cannot open", errno);
  }
  if (auto ok = check_file(place, slot.name, st, S_IFIFO); !ok) return ok.error();
  slot.device = st.st_dev;
  slot.inode = st.st_ino;
  return slot;
}

}  // namespace

Result<Attempt> take_slot(const Place& place, unsigned count) {
  Attempt attempt;
  for (unsigned number = 1; number <= count; ++number) {
    // Before it is known whether the slot is taken: a holder that ends between the two is heard of.
    auto to_wait = open_slot(place, number, O_RDONLY);
    if (!to_wait) return to_wait.error();
    auto file = open_slot(place, number, O_RDWR);
    if (!file) return file.error();
    auto got = try_flock(*file, place, LOCK_EX);
    if (!got) return got.error();
    if (!*got) {
      attempt.taken.push_back(std::move(to_wait->fd));
      continue;
    }
    if (identity_of(*file, place) != Identity::same) {
      return Error{Errc::unreachable,
                   path_of(place, file->name) + " was replaced while it was taken"};
    }
    attempt.slot = Slot{number, std::move(*file)};
    attempt.taken.clear();
    return attempt;
  }
  return attempt;
}

void free_slot(const LockFile& slot) {
  ::flock(slot.fd.get(), LOCK_UN);
  (void)!::write(slot.fd.get(), "", 1);  // if it is full of such bytes, it is readable all the same
}

RoomForSlots::RoomForSlots() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) before_ = before;
}

RoomForSlots::~RoomForSlots() {
  rlimit limit{};
  if (before_ == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = before_;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace dlock::file
