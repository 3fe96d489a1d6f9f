// The witness.  An exclusive lock is one open file description, and a copy of its descriptor keeps
// it.  A shared or a slot's lock is two, and needs both: with the seat alone, an exclusive request
// would be granted beside the orphaned job; with the lock file alone, the seat would be given
// again, one holder too many.  So its witness is a socket in whose queue both descriptors lie, sent
// and never received: they stay open for as long as anybody has the socket.
//
// Release unlocks before it closes, and so frees the lock in spite of all copies.  The seat goes
// first: while the lock file is still locked, nobody in another mode looks at the seats.
#include "backends/file/file_lease.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "backends/file/name.hpp"
#include "util/boot.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using util::in_quotes;
using util::printable;

class FileLease final : public Lease {
 public:
  FileLease(Held held, Fd witness) : held_(std::move(held)), witness_(std::move(witness)) {}

  ~FileLease() override {
    if (held_.seat) held_.seat->fd.reset();
    held_.main.fd.reset();
  }

  const std::string& owner_id() const override { return held_.owner_id; }
  std::optional<std::uint64_t> fence() const override { return held_.fence; }
  Deadline valid_until() const override { return kNever; }

  Result<void> renew(Deadline, Cancel) override {
    held_.watch.drain();
    return check();
  }

  // inotify costs a short job more than it would gain: closing it takes up to some milliseconds.
  int event_fd() override { return subscribed_ ? held_.watch.fd() : -1; }

  void subscribe() override {
    subscribed_ = held_.watch.add(held_.main.fd.get(), Watch::For::replaced) &&
                  (!held_.seat || held_.watch.add(held_.seat->fd.get(), Watch::For::replaced)) &&
                  held_.watch.add(held_.place.dir->fd(), Watch::For::moved_directory);
  }

  Result<void> end_command(Deadline, Deadline, Cancel) override {
    if (held_.seat) {
      mark(*held_.seat, 0, kCommandEnded);
    } else if (held_.recorded) {
      mark(held_.main, kHeaderSize, kCommandEnded);
    }
    return check();
  }

  int witness_fd() const override { return witness_ ? witness_.get() : held_.main.fd.get(); }

  Result<void> release(Deadline, Cancel) override {
    Result<void> ours = check();
    // What cannot be told changes nothing: nobody is ever granted these inodes after us unless they
    // are still in place, and then they are ours to give up.
    if (!ours && ours.error().code == Errc::unreachable) ours = {};
    if (held_.seat) {
      give_up(*held_.seat, 0);
    }
    if (held_.seat || !held_.recorded) {
      ::flock(held_.main.fd.get(), LOCK_UN);
    } else {
      give_up(held_.main, kHeaderSize);
    }
    return ours;
  }

 private:
  // The record first, so that nobody sees a free lock with a holder.
  static void give_up(const LockFile& file, off_t record_at) {
    mark(file, record_at, kGivenUp);
    ::flock(file.fd.get(), LOCK_UN);
  }

  static void mark(const LockFile& file, off_t record_at, char sign) {
    [[maybe_unused]] const ssize_t wrote = ::pwrite(file.fd.get(), &sign, 1, record_at);
  }

  Result<void> check() const {
    if (auto there = held_.place.dir->still_there(); !there) return there;
    if (auto main = check(held_.main); !main) return main;
    return held_.seat ? check(*held_.seat) : Result<void>();
  }

  Result<void> check(const LockFile& file) const {
    Identity identity = identity_of(file, held_.place);
    if (identity != Identity::other && held_.place.folder) identity = by_whole_path(file);
    if (identity == Identity::unknown) return errno_error(shown(file), "lock file", errno);
    if (identity == Identity::other) return Error{Errc::lost, why_lost(file)};
    return {};
  }

  // A folder of a long name may have been moved away, with the files in it.
  Identity by_whole_path(const LockFile& file) const {
    auto place = place_of(held_.place.dir, held_.key, Missing::leave);
    if (!place || !*place) return Identity::other;
    return identity_of(file, **place);
  }

  std::string why_lost(const LockFile& file) const {
    if (const auto note = find_note(read_notes(held_.place), held_.owner_id)) {
      return in_quotes(held_.key) + " was force-released" +
             (note->why.empty() ? "" : " by " + printable(note->why));
    }
    return "lock file " + printable(shown(file)) + " was deleted or replaced";
  }

  std::string shown(const LockFile& file) const {
    return held_.place.shown + file.name.substr(held_.place.leaf.size());
  }

  Held held_;
  Fd witness_;  // only with a seat
  bool subscribed_ = false;
};

Result<Fd> make_witness(int main, int seat) {
  std::array<int, 2> ends{};
  const auto fails = [] {
    return Error{Errc::unreachable,
                 std::string("cannot keep the lock: socketpair: ") + std::strerror(errno)};
  };
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return fails();
  const Fd sender(ends[0]);
  Fd witness(ends[1]);
  char byte = 0;
  iovec data{&byte, 1};
  const std::array<int, 2> fds{main, seat};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  if (sendmsg(sender.get(), &message, MSG_NOSIGNAL) != 1) return fails();
  return witness;
}

}  // namespace

Result<std::unique_ptr<Lease>> make_lease(Held held) {
  Fd witness;
  if (held.seat) {
    auto made = make_witness(held.main.fd.get(), held.seat->fd.get());
    if (!made) return made.error();
    witness = std::move(*made);
  }
  return std::make_unique<FileLease>(std::move(held), std::move(witness));
}

}  // namespace dlock::file
