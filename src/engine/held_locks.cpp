#include "engine/held_locks.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock {

const HeldLock* HeldLocks::find(const std::string& key) const {
  const auto it = std::find_if(locks_.begin(), locks_.end(),
                               [&](const auto& lock) { return lock->key() == key; });
  return it == locks_.end() ? nullptr : it->get();
}

// Also at the others after a loss: they are kept until the job has ended.
std::optional<HeldLocks::Loss> HeldLocks::look(Deadline now) {
  for (const auto& lock : locks_) {
    const auto lost = lock->look(now);
    if (lost && !loss_) loss_ = Loss{lock->key(), *lost};
  }
  return loss_;
}

Deadline HeldLocks::next_deadline() const {
  Deadline next = kNever;
  for (const auto& lock : locks_) next = std::min(next, lock->next_deadline());
  return next;
}

void HeldLocks::add_lost_fds(std::vector<pollfd>& fds) const {
  for (const auto& lock : locks_) fds.push_back({lock->lost_fd(), POLLIN, 0});
}

// A server that is down must not keep the locks of another from being released.
std::vector<HeldLocks::Loss> HeldLocks::release(Cancel impatience) {
  std::vector<std::optional<Error>> errors(locks_.size());
  const auto release_one = [&](std::size_t i) {
    HeldLock& lock = *locks_[i];
    const bool was_lost = lock.is_lost();
    const auto released = lock.release(impatience);
    if (!released) {
      errors[i] = released.error();
    } else if (!was_lost) {
      util::log(util::Level::detail,
                (lock.borrowed() ? "returned to the outer run: " : "released ") +
                    util::in_quotes(lock.key()));
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < locks_.size(); ++i) {
    try {
      others.emplace_back(release_one, i);
    } catch (const std::system_error&) {
      release_one(i);
    }
  }
  if (!locks_.empty()) release_one(0);
  for (std::thread& other : others) other.join();
  std::vector<Loss> failures;
  for (std::size_t i = 0; i < locks_.size(); ++i) {
    if (errors[i]) failures.push_back({locks_[i]->key(), *errors[i]});
  }
  locks_.clear();
  loss_.reset();
  return failures;
}

void HeldLocks::release_at(Deadline until) {
  if (Clock::now() < until) {
    std::erase_if(locks_, [&](const auto& lock) { return lock->end_command(until); });
  }
  for (Deadline now = Clock::now(); now < until && !locks_.empty(); now = Clock::now()) {
    std::erase_if(locks_, [&](const auto& lock) {
      if (!lock->look(now)) return false;
      (void)lock->release(Cancel());
      return true;
    });
    std::vector<pollfd> fds;
    add_lost_fds(fds);
    util::poll(fds, std::min(until, next_deadline()));
  }
  (void)release(Cancel());
}

}  // namespace dlock
