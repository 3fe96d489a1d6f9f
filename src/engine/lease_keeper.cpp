#include "engine/lease_keeper.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/lease_schedule.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using nlohmann::ordered_json;

constexpr Millis kBetweenNews{20};     // at least
constexpr Millis kWithoutNews{1'000};  // between two renewals, if the service cannot tell of a loss

void ring(const Fd& event) { eventfd_write(event.get(), 1); }

Fd make_event() { return Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

// Without how long the last try waited: that is a part of the time that counts.
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

struct LeaseKeeper::State {
  State(std::unique_ptr<Lease> lease_to_keep, Spec keeper_spec, LeaseEnd& lease_end)
      : lease(std::move(lease_to_keep)),
        spec(std::move(keeper_spec)),
        schedule(lease->valid_until(), spec.ttl, spec.margins, util::random_seed(), spec.look),
        end(&lease_end) {}

  enum class Wake { stopped, news, due };
  Wake wait(Deadline due);
  void keep();
  bool renew();  // false: lost
  void move_end();
  void log_event(std::string_view event, const ordered_json& more) const {
    if (spec.event_log != nullptr) spec.event_log->write(event, spec.key, more);
  }
  void set_loss(Error error);
  void set_trouble(std::optional<Error> error);

  // The thread's alone until `done` is readable.
  std::unique_ptr<Lease> lease;
  const Spec spec;
  LeaseSchedule schedule;
  Deadline failing_since = kNever;

  const Fd stop = make_event();
  const Fd done = make_event();
  const Fd lost = make_event();

  // Touched by both.
  std::mutex mutex;
  LeaseEnd* end;  // null once this thread is left behind: it may be another lock's by then
  std::optional<Error> loss;
  std::optional<Error> trouble;

  std::thread thread;
};

void LeaseKeeper::State::set_loss(Error error) {
  {
    const std::lock_guard lock(mutex);
    loss = std::move(error);
  }
  ring(lost);
}

void LeaseKeeper::State::set_trouble(std::optional<Error> error) {
  const std::lock_guard lock(mutex);
  trouble = std::move(error);
}

void LeaseKeeper::State::move_end() {
  const std::lock_guard lock(mutex);
  if (end != nullptr) end->set(schedule.valid_until());
}

bool LeaseKeeper::State::renew() {
  const Deadline asked = Clock::now();
  const auto result = lease->renew(schedule.attempt_until(asked), Cancel(stop.get()));
  const Deadline answered = Clock::now();
  if (result) {
    const bool was_failing = schedule.failing();
    if (!schedule.renewed(asked, answered, lease->valid_until())) {
      set_loss({Errc::unreachable, "the renewal was answered too late"});
      return false;
    }
    set_trouble(std::nullopt);
    move_end();
    if (was_failing) {
      util::log(util::Level::note, "renewed " + util::in_quotes(spec.key) + " again");
      log_event("renewed", {{"after_ms", since(failing_since).count()}});
    }
    return true;
  }
  if (result.error().code == Errc::cancelled) return true;
  if (result.error().code != Errc::unreachable) {
    Error why = result.error();
    why.code = Errc::lost;
    set_loss(std::move(why));
    return false;
  }
  if (answered >= schedule.give_up_at()) {
    Error why = result.error();
    why.message = not_renewed_in_words(schedule.valid_until() - spec.ttl, why);
    set_loss(std::move(why));
    return false;
  }
  set_trouble(result.error());
  if (schedule.failed(answered)) {
    failing_since = answered;
    std::string message =
        "cannot renew " + util::in_quotes(spec.key) + ": " + result.error().message;
    ordered_json left_ms;
    if (schedule.valid_until() != kNever) {
      const Millis left = remaining(schedule.valid_until(), answered);
      left_ms = left.count();
      message += "; without a renewal, the lock is lost in at most " + util::format_duration(left);
    }
    util::log(util::Level::warning, message);
    log_event("renew-failed", {{"error", result.error().message}, {"left_ms", left_ms}});
  }
  return true;
}

LeaseKeeper::State::Wake LeaseKeeper::State::wait(Deadline due) {
  do {
    std::array<pollfd, 2> fds{{{stop.get(), POLLIN, 0}, {lease->event_fd(), POLLIN, 0}}};
    util::poll(fds, due);
    if (fds[0].revents != 0) return Wake::stopped;
    if (fds[1].revents != 0 && lease->has_news()) return Wake::news;
  } while (Clock::now() < due);
  return Wake::due;
}

void LeaseKeeper::State::keep() {
  const bool starts = wait(spec.starts) != Wake::stopped;
  if (starts) lease->subscribe();
  Deadline next{};  // at once, for what happened before that
  while (starts) {
    const Wake why = wait(next);
    if (why == Wake::stopped || !renew()) break;
    // However often the service has news, it costs no more than this.
    if (why == Wake::news && util::wait_readable(stop.get(), after(Clock::now(), kBetweenNews))) {
      break;
    }
    next = std::min(schedule.next_attempt(), schedule.give_up_at());
    if (lease->event_fd() < 0) next = std::min(next, after(Clock::now(), kWithoutNews));
  }
  ring(done);
}

LeaseKeeper::LeaseKeeper(std::unique_ptr<Lease> lease, Spec spec, LeaseEnd& end)
    : state_(std::make_shared<State>(std::move(lease), std::move(spec), end)) {
  if (!state_->stop || !state_->done || !state_->lost) {
    refused_ = Error{Errc::unreachable, std::string("eventfd: ") + strerror(errno)};
    return;
  }
  try {
    state_->thread = std::thread([state = state_] { state->keep(); });
    runs_ = true;
  } catch (const std::system_error& error) {
    refused_ = Error{Errc::unreachable, "cannot start a thread: " + error.code().message()};
  }
}

LeaseKeeper::~LeaseKeeper() { stop(kNever); }

int LeaseKeeper::lost_fd() const { return state_->lost.get(); }

std::optional<Error> LeaseKeeper::loss() {
  const std::lock_guard lock(state_->mutex);
  return state_->loss;
}

std::optional<Error> LeaseKeeper::trouble() {
  const std::lock_guard lock(state_->mutex);
  return state_->trouble;
}

std::unique_ptr<Lease> LeaseKeeper::stop(Deadline deadline) {
  if (left_behind_) return nullptr;
  if (!std::exchange(runs_, false)) return std::move(state_->lease);
  ring(state_->stop);
  if (util::wait_readable(state_->done.get(), deadline)) {
    state_->thread.join();
    return std::move(state_->lease);
  }
  left_behind_ = true;
  state_->thread.detach();
  const std::lock_guard lock(state_->mutex);
  state_->end = nullptr;
  return nullptr;
}

}  // namespace dlock
