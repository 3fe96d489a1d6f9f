#include "engine/held_locks.hpp"

#include <algorithm>
#include <span>
#include <system_error>
#include <thread>

#include "util/local_socket.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock {

const HeldLock* HeldLocks::find(const std::string& key) const {
  const auto it = std::find_if(locks_.begin(), locks_.end(),
                               [&](const auto& lock) { return lock->key() == key; });
  return it == locks_.end() ? nullptr : it->get();
}

// Sends few messages: the other process may be stopped, and its socket has a limit.
bool HeldLocks::send_lock_fds(SupervisorEnd& link) const {
  std::vector<int> fds;
  for (const auto& lock : locks_) {
    fds.insert(fds.end(), lock->lock_fds().begin(), lock->lock_fds().end());
  }
  for (std::size_t at = 0; at < fds.size(); at += util::kMostPassed) {
    const auto some = std::span(fds).subspan(at, std::min(util::kMostPassed, fds.size() - at));
    if (!link.send({ToLauncher::Kind::lock_fds}, some)) return false;
  }
  return true;
}

// Checks the others after a loss, too: they are kept until the job has ended.
std::vector<HeldLocks::Loss> HeldLocks::check(Deadline now) {
  std::vector<Loss> losses;
  for (const auto& lock : locks_) {
    if (lock->is_lost()) continue;
    if (const auto lost = lock->check(now)) losses.push_back({lock->key(), *lost});
  }
  return losses;
}

std::vector<std::string> HeldLocks::lost_keys() const {
  std::vector<std::string> out;
  for (const auto& lock : locks_) {
    if (lock->is_lost()) out.push_back(lock->key());
  }
  return out;
}

Deadline HeldLocks::next_deadline() const {
  Deadline next = kNever;
  for (const auto& lock : locks_) next = std::min(next, lock->next_deadline());
  return next;
}

void HeldLocks::add_lost_fds(std::vector<pollfd>& fds) const {
  for (const auto& lock : locks_) fds.push_back({lock->lost_fd(), POLLIN, 0});
}

// Each lock has a thread of its own, so that a server that is down does not delay the others.
template <class Action>
std::vector<std::optional<Error>> HeldLocks::at_once(Action action) {
  std::vector<std::optional<Error>> errors(locks_.size());
  const auto act = [&](std::size_t i) {
    if (const Result<void> done = action(*locks_[i]); !done) errors[i] = done.error();
  };
  std::vector<std::thread> threads;
  threads.reserve(locks_.size());
  for (std::size_t i = 1; i < locks_.size(); ++i) {
    try {
      threads.emplace_back(act, i);
    } catch (const std::system_error&) {
      act(i);
    }
  }
  if (!locks_.empty()) act(0);
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<HeldLocks::Loss> HeldLocks::release(Cancel impatience, Deadline latest) {
  const auto errors = at_once([&](HeldLock& lock) {
    const bool was_lost = lock.is_lost();
    auto released = lock.release(impatience, latest);
    if (released && !was_lost) {
      util::log(util::Level::detail,
                (lock.borrowed() ? "returned to the outer run: " : "released ") +
                    util::in_quotes(lock.key()));
    }
    return released;
  });
  std::vector<Loss> failures;
  for (std::size_t i = 0; i < locks_.size(); ++i) {
    if (errors[i]) failures.push_back({locks_[i]->key(), *errors[i]});
  }
  locks_.clear();
  return failures;
}

void HeldLocks::release_one(const std::string& key, Deadline latest) {
  std::erase_if(locks_, [&](const auto& lock) {
    if (lock->key() != key) return false;
    (void)lock->release(Cancel(), latest);
    return true;
  });
}

Result<void> HeldLocks::complete(const Completion& completion, Cancel cancel) {
  auto done = locks_.front()->complete(completion, cancel);
  if (done) {
    util::log(util::Level::detail, "released " + util::in_quotes(locks_.front()->key()) +
                                       ", which is remembered as done");
    locks_.clear();
  }
  return done;
}

std::vector<HeldLocks::Loss> HeldLocks::expire_at(Deadline until, Cancel impatience) {
  std::vector<Loss> losses;
  if (Clock::now() >= until) return losses;
  const auto errors = at_once([&](HeldLock& lock) { return lock.end_command(until, impatience); });
  for (std::size_t i = locks_.size(); i-- > 0;) {
    const bool is_lost = errors[i] && errors[i]->code == Errc::lost;
    if (is_lost) losses.push_back({locks_[i]->key(), *errors[i]});
    if (is_lost || !errors[i]) locks_.erase(locks_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return losses;
}

void HeldLocks::release_at(Deadline until) {
  for (Deadline now = Clock::now(); now < until && !locks_.empty(); now = Clock::now()) {
    std::erase_if(locks_, [&](const auto& lock) {
      if (!lock->check(now)) return false;
      (void)lock->release(Cancel(), until);
      return true;
    });
    std::vector<pollfd> fds;
    add_lost_fds(fds);
    util::poll(fds, std::min(until, next_deadline()));
  }
  (void)release(Cancel());
}

}  // namespace dlock
