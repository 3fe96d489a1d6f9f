// A lock is one or several open file descriptions, and the registration of its holder is another
// one.  Copies of their descriptors keep them locked (Lease::lock_fds).  release() unlocks
// before it closes, and so frees the lock in spite of all copies.
//
// The kernel keeps the lock: there is no TTL, and renew() only checks that the files are in their
// places and that the lock was not force-released.
#include "backends/file/file_lease.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "backends/file/file_records.hpp"
#include "backends/file/name.hpp"
#include "backends/file/registrations.hpp"
#include "core/marks.hpp"

namespace dlock::file {
namespace {

class FileLease final : public Lease {
 public:
  explicit FileLease(Held held) : held_(std::move(held)) {}

  const std::string& owner_id() const override { return held_.owner.id; }
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
    subscribed_ = std::all_of(held_.locks.begin(), held_.locks.end(),
                              [this](const LockFile& lock) {
                                return held_.watch.add(lock.fd.get(), Watch::For::replaced);
                              }) &&
                  watch_registration() &&
                  held_.watch.add(held_.place->dir->fd(), Watch::For::moved_directory);
  }

  Result<void> end_command(Deadline, Deadline, Cancel) override {
    held_.registration->set(State::ended);
    return check();
  }

  std::vector<int> lock_fds() const override {
    std::vector<int> fds;
    for (const LockFile& lock : held_.locks) fds.push_back(lock.fd.get());
    if (held_.registration->fd() >= 0) fds.push_back(held_.registration->fd());
    return fds;
  }

  Result<void> release(Deadline, Cancel) override {
    Result<void> ours = check();
    // If it is not known, unlock all the same: these files were ours, and another process can have
    // been granted them only if they were unlocked before.
    if (!ours && ours.error().code == Errc::unreachable) ours = {};
    // In this order, readers never see a free lock with a holder, nor take ours for another
    // program's.
    held_.registration->set(State::released);
    for (auto lock = held_.locks.rbegin(); lock != held_.locks.rend(); ++lock) {
      ::flock(lock->fd.get(), LOCK_UN);
    }
    held_.registration->remove();
    return ours;
  }

  // Between the check and the record the lock can be lost only if its file is deleted at that
  // moment. The mark is right then, too: the job was done under the lock.
  Result<void> complete(const Completion& completion, Deadline deadline, Cancel cancel) override {
    if (auto ours = check(); !ours) return ours;
    auto written = put_record(*held_.place->dir, record_of({held_.key, completion.period}),
                              format_mark(held_.owner, held_.fence, completion.remember), deadline);
    if (!written) return written;
    (void)release(deadline, cancel);
    return {};
  }

 private:
  bool watch_registration() {
    const int fd = held_.registration->fd();
    return fd < 0 || held_.watch.add(fd, Watch::For::replaced_or_written);
  }

  Result<void> check() {
    for (;;) {
      if (!loss_) loss_ = why_revoked();
      if (loss_) return *loss_;
      if (!restore_registration()) break;
      // Again, for what has happened before the new file was watched.
      if (!loss_ && subscribed_ && !watch_registration()) break;
    }
    for (const LockFile& lock : held_.locks) {
      if (auto ok = check(lock); !ok) return ok;
    }
    return {};
  }

  // True if it was deleted.  Meanwhile a request with another claim may have been granted.
  bool restore_registration() {
    if (!held_.registration->restore()) return false;
    if (held_.claim.mode == Mode::exclusive) return true;
    // A grant that has not seen the new registration is complete when this is locked.  If a stopped
    // process has it locked, the comparison is made all the same.
    const auto locked = lock_registrations(*held_.place, held_.owner.pid, Clock::now(), Cancel());
    const auto ours = check_claim(*held_.place, held_.key, held_.claim);
    if (!ours && ours.error().code == Errc::conflict) {
      loss_ = Error{Errc::lost, "its registration was deleted, and " + ours.error().message};
    }
    return true;
  }

  Result<void> check(const LockFile& file) const {
    const auto in_place = is_in_place(file, *held_.place);
    if (!in_place) return in_place.error();
    if (in_place.value()) return {};
    return not_in_place(file, *held_.place);
  }

  // None if the lock was not force-released.  Else State::broken answers the process that does it.
  std::optional<Error> why_revoked() {
    const auto why = held_.registration->revoked();
    if (!why) return std::nullopt;
    held_.registration->set(State::broken);
    return taken_away("", held_.key, *why);
  }

  Held held_;
  bool subscribed_ = false;
  std::optional<Error> loss_;  // found earlier, and for good
};

}  // namespace

std::unique_ptr<Lease> make_lease(Held held) {
  return std::make_unique<FileLease>(std::move(held));
}

}  // namespace dlock::file
