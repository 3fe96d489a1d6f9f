// Each look has a thread of its own, because a server can be silent for longer than a user waits
// who has pressed q.  When a look ends, the number of its place comes through a pipe.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <system_error>
#include <thread>

#include "cli/cmd.hpp"
#include "cli/layers.hpp"
#include "cli/print_json.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "cli/watch_lines.hpp"
#include "cli/watch_screen.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"

namespace dlock::cli {
namespace {

constexpr Millis kTick{1'000};  // how often the screen is drawn: it may have been resized

Result<Listing> look(WatchedPlace& place, const std::string& only) {
  const bool was_open = place.backend != nullptr;
  if (!was_open) {
    auto opened = place.service->open();
    if (!opened) return opened.error();
    place.backend = std::move(*opened);
  }
  const Deadline start = Clock::now();
  Result<Listing> found = Listing();
  if (only.empty()) {
    found = place.service->list(*place.backend);
  } else if (auto lock = place.backend->inspect(only, kNever); !lock) {
    found = lock.error();
  } else if (!lock->holders.empty()) {
    found->locks.push_back(std::move(*lock));
  }
  place.took = since(start);
  if (found) return found;
  place.backend.reset();  // after a pause, the server may have closed the connection
  return was_open ? look(place, only) : found;
}

class Watch {
 public:
  Watch(const Invocation& invocation, std::span<const BackendEntry> backends);
  [[noreturn]] void run();

 private:
  void start_look(std::size_t number);
  void wait();
  void take(WatchedPlace& place);
  void fail(WatchedPlace& place, const Error& error);
  void tell_if_synced();

  const bool all_;
  std::string only_;  // --exit-when
  Millis wanted_{2'000};
  std::vector<WatchedPlace> places_;
  bool json_ = false;
  Columns<LockRow> columns_;  // of --output
  bool is_screen_ = false;
  bool is_synced_ = false;
  std::array<int, 2> ended_{};  // the pipe
};

Watch::Watch(const Invocation& invocation, std::span<const BackendEntry> backends)
    : all_(invocation.has("all")) {
  const Settings settings = given_settings(invocation);
  if (const Setting* state = effective(settings, flag("exit-when"))) {
    to_choice(*state, flag("exit-when"));
    if (invocation.operands.size() != 1) refuse(*state, "takes one KEY: --exit-when free KEY");
    only_ = key_operand(invocation);
    set_early_status(exit_status::kNo);
  }
  if (const Setting* time = settings.find("interval")) {
    wanted_ = to_duration(*time, flag("interval"));
  }
  std::vector<std::string> repeated;
  for (const Settings& its : each_backend(invocation, settings)) {
    std::optional<util::LogInto> kept;
    if (!places_.empty()) kept.emplace(repeated);  // which variables are not read
    WatchedPlace& place = places_.emplace_back();
    if (all_) place.profile = its.find("backend")->text();
    try {
      place.service = std::make_unique<LockService>(invocation, its, backends);
      json_ = place.service->json();
      columns_ = place.service->columns();
    } catch (const Refusal& refusal) {
      if (!all_) throw;
      kept.reset();
      util::log(util::Level::error, refusal.what());
      place.why = refusal.what();
      place.due = kNever;
    }
  }
  const auto is_usable = [](const WatchedPlace& it) { return it.service != nullptr; };
  if (std::ranges::none_of(places_, is_usable)) refuse_config("--all: no profile can be used");
  const char* terminal = std::getenv("TERM");
  is_screen_ = !json_ && isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
               terminal != std::string_view("dumb");
}

void Watch::run() {
  std::atexit(leave_screen);  // after an exception
  signal(SIGPIPE, SIG_IGN);
  for (const int sig : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) heed(sig);
  if (pipe2(ended_.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  if (is_screen_ && util::log_has_terminal()) util::set_log(-1, false);  // would tear the table
  for (;;) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].due <= Clock::now()) start_look(i);
    }
    if (is_screen_) draw(places_, wanted_, columns_);
    if (json_) tell_if_synced();
    wait();
  }
}

void Watch::start_look(std::size_t number) {
  WatchedPlace& place = places_[number];
  place.due = kNever;
  if (place.why.empty()) place.asked = Clock::now();
  std::thread([this, number, &place] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // client libraries may not expect a signal
    place.found = look(place, only_);
    util::write_all(ended_[1], {reinterpret_cast<const char*>(&number), sizeof number});
  }).detach();
}

void Watch::wait() {
  Deadline until = is_screen_ ? after(Clock::now(), kTick) : kNever;
  for (const WatchedPlace& place : places_) until = std::min(until, place.due);
  const bool has_keys = has_screen() && isatty(STDIN_FILENO) != 0;
  std::array<pollfd, 3> fds{{{ended_[0], POLLIN, 0},
                             {STDOUT_FILENO, 0, 0},  // its reader may be gone
                             {has_keys ? STDIN_FILENO : -1, POLLIN, 0}}};
  util::poll(fds, until);
  if (fds[1].revents != 0) end_watch(early_status());
  char key = 0;
  const bool is_pressed = fds[2].revents != 0 && has_screen();  // not stopped meanwhile
  if (is_pressed && (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q')) end_watch(early_status());
  std::size_t number = 0;
  if (fds[0].revents != 0 && ::read(ended_[0], &number, sizeof number) > 0) take(places_[number]);
}

void Watch::take(WatchedPlace& place) {
  if (!place.found) {
    place.due = after(Clock::now(), wanted_);
    return fail(place, place.found.error());
  }
  const bool is_first = !place.answered;
  place.answered = Clock::now();
  place.location = place.service->place(place.backend->location());
  place.interval = interval_for(wanted_, place.took);
  place.due = after(*place.answered, place.interval);

  auto& [locks, missing] = place.found.value();
  place.before = std::exchange(place.now, {});
  if (missing.empty()) {
    place.now = std::move(locks);
    place.why.clear();
  } else {  // a lock that was not found may be one of the part that does not answer
    std::ranges::set_union(locks, place.before, std::back_inserter(place.now), {}, &LockInfo::key,
                           &LockInfo::key);
    fail(place, missing.front());
  }
  place.rows = compare(is_first && is_screen_ ? place.now : place.before, place.now);
  for (ChangedRow& it : place.rows) it.profile = place.profile;

  if (!is_screen_ && (only_.empty() || json_)) print_changes(place, is_first);
  if (only_.empty() || !place.now.empty()) return;
  if (is_screen_) draw(places_, wanted_, columns_);
  end_watch(0);
}

// Ends this process if the first look is refused.
void Watch::fail(WatchedPlace& place, const Error& error) {
  const bool is_news = place.why.empty();
  const bool may_pass = error.code == Errc::unreachable || error.code == Errc::lost;
  const bool is_final = is_news && !place.answered && !may_pass && !all_;
  place.why = error.message;
  if (!is_final && (is_screen_ || !is_news)) return;
  const int status = place.service->report(error);
  if (is_final) end_watch(status);
}

void Watch::tell_if_synced() {
  const bool has_all = std::ranges::all_of(
      places_, [&](const WatchedPlace& it) { return it.answered || (all_ && !it.why.empty()); });
  if (is_synced_ || !has_all) return;
  is_synced_ = true;
  print_out(print_json_line({{{"time", util::utc_now()}, {"event", "synced"}}}));
}

}  // namespace

int cmd_watch(const Invocation& invocation, std::span<const BackendEntry> backends) {
  Watch(invocation, backends).run();
}

}  // namespace dlock::cli
