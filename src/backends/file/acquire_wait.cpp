// The half of an acquisition that waits, in the kernel's queue; and what it says of who is in the
// way.
#include <sys/file.h>

#include <vector>

#include "backends/file/acquisition.hpp"
#include "backends/file/inspect.hpp"
#include "backends/file/name.hpp"
#include "util/exchange.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using util::in_quotes;

// The fence of the newest grant; every grant has a new one.
std::optional<std::uint64_t> last_fence(const LockFile& main) {
  const Content content = read_lock_file(main.fd.get());
  return content.header ? std::optional(content.header->fence) : std::nullopt;
}

}  // namespace

Error Acquisition::cancelled() const {
  return {Errc::cancelled, "stopped waiting for " + in_quotes(request_.key)};
}

Error Acquisition::busy() const {
  std::string by;
  if (told_ && !told_->holders.empty()) {
    const Owner& owner = told_->holders.front().owner;
    by = " by " + util::printable(owner.host) + " pid " + std::to_string(owner.pid);
  }
  return {Errc::busy, in_quotes(request_.key) + " is held" + by};
}

Result<void> Acquisition::check_mode(const LockInfo& seen) const {
  for (const LockInfo::Holder& holder : seen.holders) {
    // A dlock that has no record yet may be of any mode: it is waited for.
    if (holder.foreign || holder.owner.id.empty()) continue;
    if (modes_mix(request_.mode, request_.slots, seen.mode, seen.slots)) continue;
    return mode_conflict(request_, seen.mode, seen.slots);
  }
  return {};
}

// Who is in the way?  Errc::conflict if that is of another kind, else tells on_blocked.
Result<LockInfo> Acquisition::look_and_tell() {
  auto seen = look(place_.dir, request_.key);
  if (!seen) return seen.error();
  if (auto ok = check_mode(*seen); !ok) return ok.error();
  const auto same_holders = [](const LockInfo& a, const LockInfo& b) {
    if (a.holders.size() != b.holders.size()) return false;
    for (std::size_t i = 0; i < a.holders.size(); ++i) {
      const Owner& one = a.holders[i].owner;
      const Owner& other = b.holders[i].owner;
      if (one.id != other.id || one.pid != other.pid) return false;
    }
    return true;
  };
  if (seen->holders.empty() || (told_ && same_holders(*told_, *seen))) return seen;
  if (wait_.on_blocked) wait_.on_blocked(*seen);
  told_ = *seen;
  return seen;
}

// For a request that may not wait, and was refused: true if that is final.
Result<bool> Acquisition::refused() {
  auto seen = look_and_tell();
  if (!seen) return seen.error();
  const std::size_t enough = request_.mode == Mode::slots && seen->mode == Mode::slots &&
                                     !seen->holders.empty() && !seen->holders.front().foreign
                                 ? request_.slots
                                 : 1;
  return seen->holders.size() >= enough || ++refusals_ >= kSpuriousRefusals;
}

// False: the refusal may have been a reader's, try again at once.
Result<bool> Acquisition::may_wait() {
  if (wait_.until > Clock::now()) {
    if (wait_.cancel.requested()) return cancelled();
    return true;
  }
  auto final = refused();
  if (!final) return final.error();
  if (*final) return busy();
  return false;
}

void Acquisition::log_wait(const Result<Step>& step, std::span<LockFile* const> files,
                           Deadline asked) const {
  if (!util::exchanges_shown()) return;
  // Only a file that was granted is locked; without a grant, the lock is named by its main file.
  const LockFile* named = &*main_;
  for (const LockFile* file : files) {
    if (file->locked_by != 0) named = file;
  }
  std::string outcome = "granted";
  if (!step) {
    outcome = step.error().message;
  } else if (step.value() == Step::again) {
    outcome = "the file was replaced";
  }
  util::log_exchange("lock file " + path_of(place_, named->name), "wait", outcome, asked);
}

// Waits until one of the files is granted; again: one of them was replaced.  Otherwise nothing is
// left of the wait on return, before any of the files is closed.
Result<Acquisition::Step> Acquisition::wait_in_kernel(int operation,
                                                      std::span<LockFile* const> files) {
  const Deadline asked = Clock::now();
  waiting_ = std::make_unique<FlockWait>(request_.owner.pid);
  auto step = wait_for_any(operation, files);
  log_wait(step, files, asked);
  watch_.clear();
  if (!step || *step != Step::granted) waiting_.reset();
  return step;
}

Result<Acquisition::Step> Acquisition::wait_for_any(int operation,
                                                    std::span<LockFile* const> files) {
  for (const LockFile* file : files) {
    if (auto ok = waiting_->add(*file, operation); !ok) return ok.error();
  }
  if (wait_.on_blocked) watch_.add(main_->fd.get(), Watch::For::replaced_or_written);
  for (const LockFile* file : files) {
    if (!wait_.on_blocked || file != &*main_) watch_.add(file->fd.get(), Watch::For::replaced);
  }
  bool must_look = true;
  std::optional<std::uint64_t> looked_at;  // the newest grant at the time
  for (;;) {
    // After the watch, so that nothing is missed.
    for (const LockFile* file : files) {
      if (identity_of(*file, place_) == Identity::other) return Step::again;
    }
    // A release is no news, but the moment before a grant, perhaps ours: a look takes 10 ms then.
    const auto fence = last_fence(*main_);
    if (must_look || (wait_.on_blocked && fence != looked_at)) {
      auto seen = look_and_tell();
      if (!seen) return seen.error();
    }
    must_look = false;
    looked_at = fence;
    auto outcome = waiting_->wait(wait_.until, wait_.cancel, watch_.fd());
    if (!outcome) return outcome.error();
    switch (outcome->end) {
      case FlockWait::End::granted:
        files[outcome->which]->locked_by = outcome->by;
        waiting_->keep_only(outcome->which);
        return Step::granted;
      case FlockWait::End::cancelled:
        return cancelled();
      case FlockWait::End::timed_out:
        return busy();
      case FlockWait::End::disturbed:
        watch_.drain();
    }
  }
}

Result<Acquisition::Step> Acquisition::wait_for_main(int operation) {
  auto may = may_wait();
  if (!may) return may.error();
  if (!*may) return Step::again;
  LockFile* const file = &*main_;
  return wait_in_kernel(operation, {&file, 1});
}

// All seats are taken: waits for the gate, and behind it for any seat.  Again: try anew.
Result<Acquisition::Step> Acquisition::wait_for_seat() {
  auto may = may_wait();
  if (!may) return may.error();
  if (!*may) return Step::again;
  auto main = open_lock_file(place_, place_.leaf);  // to watch; not locked
  if (!main) return main.error();
  main_ = std::move(*main);
  Result<Step> step = Step::again;
  if (!gate_) {
    auto gate = open_lock_file(place_, gate_name(place_.leaf));
    if (!gate) return gate.error();
    auto got = try_flock(*gate, place_, LOCK_EX);
    if (!got) return got.error();
    if (!*got) {
      LockFile* const file = &*gate;
      step = wait_in_kernel(LOCK_EX, {&file, 1});
      if (!step) return step.error();
      if (*step == Step::granted) gate_ = std::move(*gate);
      main_.reset();
      return Step::again;  // a seat may be free by now
    }
    gate_ = std::move(*gate);
  }
  std::vector<LockFile> seats;
  for (unsigned number = 1; number <= request_.slots; ++number) {
    auto seat = open_lock_file(place_, seat_name(place_.leaf, number));
    if (!seat) return seat.error();
    seats.push_back(std::move(*seat));
  }
  std::vector<LockFile*> files;
  for (LockFile& seat : seats) files.push_back(&seat);
  step = wait_in_kernel(LOCK_EX, files);
  main_.reset();
  if (!step) return step.error();
  for (LockFile& seat : seats) {
    if (*step == Step::granted && seat.locked_by != 0) seat_ = std::move(seat);
  }
  return step;
}

}  // namespace dlock::file
