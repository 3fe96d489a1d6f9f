#include "engine/renewer.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "util/duration.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using nlohmann::ordered_json;

constexpr Millis kBetweenNews{20};  // at least

void ring(const Fd& event) { eventfd_write(event.get(), 1); }

// Removes how long the last try waited: that is part of the time in the message.
std::string without_time(std::string why) {
  constexpr std::string_view kWithin = " within ";
  const auto at = why.find("no answer" + std::string(kWithin));
  if (at == std::string::npos) return why;
  const auto from = why.find(kWithin, at);
  return why.erase(from, std::min(why.find_first_of(";,", from), why.size()) - from);
}

}  // namespace

std::string not_renewed_in_words(Deadline last_success, const std::optional<Error>& trouble) {
  const Millis silent = since(last_success) / 100 * 100;
  return "no renewal succeeded for " + util::format_duration(silent) +
         (trouble ? " (" + without_time(trouble->message) + ')' : "");
}

Renewer::Renewer(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end)
    : spec_(std::move(spec)),
      lease_(std::move(lease)),
      schedule_(lease_->valid_until(), spec_.ttl, spec_.margins, util::random_seed(), spec_.look),
      end_(end) {
  end_.set(lease_->valid_until());
}

std::optional<Error> Renewer::start(Deadline first) {
  const auto refused = [&](const std::string& why) {
    for (Fd* event : {&stop_, &done_, &lost_}) event->reset();
    set_trouble(Error{Errc::unreachable, why});
    return trouble_;
  };
  set_trouble(std::nullopt);
  for (Fd* event : {&stop_, &done_, &lost_}) {
    event->reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!*event) return refused(std::string("eventfd: ") + strerror(errno));
  }
  try {
    thread_ = std::thread([self = shared_from_this(), first] { self->run(first); });
  } catch (const std::system_error& error) {
    return refused("cannot start a thread: " + error.code().message());
  }
  phase_ = Phase::runs;
  return std::nullopt;
}

Lease* Renewer::stop(Deadline deadline) {
  if (!runs()) return lease();
  ring(stop_);
  if (util::wait_readable(done_.get(), deadline)) {
    thread_.join();
    phase_ = Phase::rests;
  } else {
    thread_.detach();
    phase_ = Phase::left_behind;
  }
  return lease();
}

bool Renewer::has_news() const {
  const int event = lease_->event_fd();
  return event >= 0 && util::wait_readable(event, Deadline{}) && lease_->has_news();
}

void Renewer::unwatch() {
  if (last_end_) return;
  const std::lock_guard lock(mutex_);
  last_end_ = end_.get();
  end_.set(kNever);
}

std::optional<Error> Renewer::loss() {
  const std::lock_guard lock(mutex_);
  return loss_;
}

std::optional<Error> Renewer::trouble() {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void Renewer::set_loss(Error error) {
  {
    const std::lock_guard lock(mutex_);
    loss_ = std::move(error);
  }
  ring(lost_);
}

void Renewer::set_trouble(std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(error);
}

void Renewer::move_end() {
  const std::lock_guard lock(mutex_);
  if (!last_end_) end_.set(schedule_.valid_until());
}

void Renewer::log_event(std::string_view event, const ordered_json& more) const {
  if (spec_.event_log != nullptr) spec_.event_log->write(event, spec_.key, more);
}

void Renewer::say_failed(const Error& error, Deadline answered) const {
  std::string message = "cannot renew " + util::in_quotes(spec_.key) + ": " + error.message;
  ordered_json left_ms;
  if (schedule_.valid_until() != kNever) {
    const Millis left = remaining(schedule_.valid_until(), answered);
    left_ms = left.count();
    message += "; without a renewal, the lock is lost in at most " + util::format_duration(left);
  }
  util::log(util::Level::warning, message);
  log_event("renew-failed", {{"error", error.message}, {"left_ms", left_ms}});
}

bool Renewer::renew() {
  const Deadline asked = Clock::now();
  const auto result = lease_->renew(schedule_.attempt_until(asked), Cancel(stop_.get()));
  const Deadline answered = Clock::now();
  if (result) {
    const bool was_failing = schedule_.failing();
    if (!schedule_.renewed(asked, answered, lease_->valid_until())) {
      set_loss({Errc::unreachable, "the renewal was answered too late"});
      return false;
    }
    set_trouble(std::nullopt);
    move_end();
    if (was_failing) {
      util::log(util::Level::note, "renewed " + util::in_quotes(spec_.key) + " again");
      log_event("renewed", {{"after_ms", since(failing_since_).count()}});
    }
    return true;
  }
  Error why = result.error();
  if (why.code == Errc::cancelled) return true;
  if (why.code == Errc::unreachable && answered < schedule_.give_up_at()) {
    set_trouble(why);
    if (!schedule_.failed(answered)) return true;
    failing_since_ = answered;
    say_failed(why, answered);
    return true;
  }
  if (why.code == Errc::unreachable) {
    why.message = not_renewed_in_words(schedule_.valid_until() - spec_.ttl, why);
  } else {
    why.code = Errc::lost;
  }
  set_loss(std::move(why));
  return false;
}

Renewer::Wake Renewer::wait(Deadline due) {
  do {
    std::array<pollfd, 2> fds{{{stop_.get(), POLLIN, 0}, {lease_->event_fd(), POLLIN, 0}}};
    util::poll(fds, due);
    if (fds[0].revents != 0) return Wake::stopped;
    if (fds[1].revents != 0 && lease_->has_news()) return Wake::news;
  } while (Clock::now() < due);
  return Wake::due;
}

void Renewer::run(Deadline first) {
  const bool starts = wait(first) != Wake::stopped;
  if (starts) lease_->subscribe();
  Deadline next{};  // at once, for events before subscribe()
  while (starts) {
    const Wake why = wait(next);
    if (why == Wake::stopped || !renew()) break;
    // This limits the renewals, however often the service has news.
    if (why == Wake::news && util::wait_readable(stop_.get(), after(Clock::now(), kBetweenNews))) {
      break;
    }
    next = std::min(schedule_.next_attempt(), schedule_.give_up_at());
    if (lease_->event_fd() < 0) {
      next = std::min(next, after(Clock::now(), LeaseSchedule::kWithoutNews));
    }
  }
  ring(done_);
}

}  // namespace dlock
