// The witness.  A lock is one or several open file descriptions, and its holder is registered by
// another one; copies of their descriptors keep all that.  So the witness is a socket in whose
// queue copies of all of them lie, sent and never received: they stay open for as long as anybody
// has the socket.
//
// Release unlocks before it closes, and so frees the lock in spite of all copies.
#include "backends/file/file_lease.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "backends/file/name.hpp"
#include "backends/file/slots.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using util::in_quotes;
using util::printable;

// The lock file, the mode, a slot, the registration.
constexpr std::size_t kMostFds = 4;

Result<Fd> make_witness(const Held& held) {
  std::vector<int> fds;
  for (const LockFile& lock : held.locks) fds.push_back(lock.fd.get());
  if (held.registration->fd() >= 0) fds.push_back(held.registration->fd());
  const auto fails = [] {
    return Error{Errc::unreachable,
                 std::string("cannot keep the lock: socketpair: ") + std::strerror(errno)};
  };
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return fails();
  const Fd sender(ends[0]);
  Fd witness(ends[1]);
  char byte = 0;
  iovec data{&byte, 1};
  const std::size_t size = fds.size() * sizeof(int);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(size);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(header), fds.data(), size);
  if (sendmsg(sender.get(), &message, MSG_NOSIGNAL) != 1) return fails();
  return witness;
}

class FileLease final : public Lease {
 public:
  FileLease(Held held, Fd witness) : held_(std::move(held)), witness_(std::move(witness)) {}

  const std::string& owner_id() const override { return held_.owner_id; }
  std::optional<std::uint64_t> fence() const override { return held_.fence; }
  std::optional<unsigned> slot() const override { return held_.slot; }
  Deadline valid_until() const override { return kNever; }

  Result<void> renew(Deadline, Cancel) override {
    held_.watch.drain();
    return check();
  }

  // inotify costs a short job more than it would gain: closing it takes up to some milliseconds.
  int event_fd() override { return subscribed_ ? held_.watch.fd() : -1; }

  void subscribe() override {
    const int registered = held_.registration->fd();
    subscribed_ = std::all_of(held_.locks.begin(), held_.locks.end(),
                              [this](const LockFile& lock) {
                                return held_.watch.add(lock.fd.get(), Watch::For::replaced);
                              }) &&
                  (registered < 0 || held_.watch.add(registered, Watch::For::written)) &&
                  held_.watch.add(held_.place->dir->fd(), Watch::For::moved_directory);
  }

  Result<void> end_command(Deadline, Deadline, Cancel) override {
    held_.registration->set(State::ended);
    return check();
  }

  int witness_fd() const override { return witness_.get(); }

  Result<void> release(Deadline, Cancel) override {
    Result<void> ours = check();
    // What cannot be told changes nothing: nobody is ever granted these inodes after us unless they
    // are still in place, and then they are ours to give up.
    if (!ours && ours.error().code == Errc::unreachable) ours = {};
    // In this order nobody sees a free lock with a holder, nor takes ours for another program's.
    held_.registration->set(State::let_go);
    for (auto lock = held_.locks.rbegin(); lock != held_.locks.rend(); ++lock) {
      if (held_.slot && lock == held_.locks.rbegin()) {
        free_slot(*lock);
      } else {
        ::flock(lock->fd.get(), LOCK_UN);
      }
    }
    held_.registration->remove();
    return ours;
  }

 private:
  Result<void> check() {
    if (lost_.empty()) lost_ = why_revoked();
    if (!lost_.empty()) return Error{Errc::lost, lost_};
    if (auto there = held_.place->dir->still_there(); !there) return there;
    for (const LockFile& lock : held_.locks) {
      if (auto ok = check(lock); !ok) return ok;
    }
    return {};
  }

  Result<void> check(const LockFile& file) const {
    Identity identity = identity_of(file, *held_.place);
    if (identity != Identity::other && held_.place->folder) identity = by_whole_path(file);
    const std::string path = path_of(*held_.place, file.name);
    if (identity == Identity::unknown) return errno_error(path, "lock file", errno);
    if (identity == Identity::other) {
      return Error{Errc::lost, "lock file " + printable(path) + " was deleted or replaced"};
    }
    return {};
  }

  // A folder of a long name may have been moved away, with the files in it.
  Identity by_whole_path(const LockFile& file) const {
    auto place = place_of(held_.place->dir, held_.key, Missing::leave);
    if (!place || !*place) return Identity::other;
    return identity_of(file, **place);
  }

  // "" if it was not force-released; else whoever does that hears that we know.
  std::string why_revoked() {
    const auto why = held_.registration->revoked();
    if (!why) return "";
    held_.registration->set(State::told);
    return in_quotes(held_.key) + " was force-released" +
           (why->empty() ? "" : " by " + printable(*why));
  }

  Held held_;
  Fd witness_;
  bool subscribed_ = false;
  std::string lost_;  // why, of a lock that was force-released
};

}  // namespace

Result<std::unique_ptr<Lease>> make_lease(Held held) {
  auto witness = make_witness(held);
  if (!witness) {
    held.locks.clear();
    held.registration->remove();
    return witness.error();
  }
  return std::make_unique<FileLease>(std::move(held), std::move(*witness));
}

}  // namespace dlock::file
