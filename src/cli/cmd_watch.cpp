// Threads.   Each look has a thread of its own, because a server can be silent for longer than a
//            user waits who has pressed q.  When a look ends, the number of its place comes through
//            a pipe.  Until then, the first members of the place are those of the look.
// Terminal.  The table is drawn from the top of the screen, so it does not matter what a resized
//            terminal has done to the lines.  There is no alternate screen: the last table stays.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/cmd.hpp"
#include "cli/layers.hpp"
#include "cli/lock_changes.hpp"
#include "cli/lock_service.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"
#include "util/width.hpp"

namespace dlock::cli {
namespace {

constexpr Millis kTick{1'000};           // how often the screen is drawn: it may have been resized
constexpr Millis kSilent{2'000};         // a look that takes longer is mentioned
constexpr std::size_t kLeastHeight = 4;  // first line, headings, "... and 17 more", cursor

struct Place {
  std::unique_ptr<LockService> service;  // null: its settings were refused
  std::unique_ptr<Backend> backend;
  Result<Listing> found = Listing();
  Millis took{0};

  std::string profile;          // with --all
  Deadline due = Clock::now();  // of the next look; kNever: a look is under way
  Deadline asked = due;         // when the first look began that was not answered
  std::string why;              // why the last look was not answered
  std::optional<Deadline> answered;
  std::string location;
  Millis interval{0};
  std::vector<LockInfo> before;
  std::vector<LockInfo> now;
  std::vector<ChangedRow> rows;  // of both
};

// For the signal handler.
termios settings_before{};
volatile sig_atomic_t has_screen = 0;
volatile sig_atomic_t early_status = 0;  // of a user who ends it; --exit-when: the lock is not free

// A process in the background is stopped if it changes the terminal.
bool is_in_background() {
  const pid_t group = tcgetpgrp(STDOUT_FILENO);
  return group >= 0 && group != getpgrp();
}

void leave_screen() {
  if (has_screen != 0 && !is_in_background()) tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
  has_screen = 0;
}

// Works at once, even if this process waits for the reader of a full pipe.
void end_or_stop(int sig) {
  leave_screen();
  if (early_status == 0 && (sig == SIGINT || sig == SIGTERM)) ::_exit(0);
  signal(sig, SIG_DFL);
  raise(sig);
}

void heed(int sig) {
  if (signal(sig, end_or_stop) == SIG_IGN) signal(sig, SIG_IGN);  // by nohup
}

// Is repeated, because a shell changes the settings while this process is stopped.
void take_screen() {
  if (has_screen == 0) tcgetattr(STDIN_FILENO, &settings_before);
  has_screen = 1;
  heed(SIGTSTP);
  termios silent = settings_before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &silent);
}

// Does not wait for a look that is under way.
[[noreturn]] void end_watch(int status) {
  leave_screen();
  util::log_flush();
  ::_exit(status);
}

void print_out(std::string_view text) {
  if (util::write_all(STDOUT_FILENO, text)) return;
  end_watch(errno == EPIPE ? early_status : write_stdout(text));
}

Result<Listing> look(Place& place, const std::string& only) {
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

Object object_of(const Place& place, const LockRow& row, const std::string& event,
                 const Columns<LockRow>& columns) {
  const std::string& key = row.lock->key;
  const auto found = std::ranges::lower_bound(place.now, key, {}, &LockInfo::key);
  const bool is_there = found != place.now.end() && found->key == key;
  const LockInfo::Holder* holder = row.holder;
  if (row.waiter != nullptr && is_there && !found->holders.empty()) holder = &found->holders[0];
  const auto one = [&](std::string_view name, const LockRow& party) {
    return Object::Field{name, {}, {{party_object(party, columns)}}, true};
  };
  Object out{{{"time", util::utc_now()}, {"event", event}}};
  if (!place.profile.empty()) out.fields.push_back({"profile", place.profile});
  out.fields.push_back({"key", key});
  out.fields.push_back(holder != nullptr ? one("holder", {row.lock, holder})
                                         : Object::Field{"holder", {}});
  if (row.waiter != nullptr) out.fields.push_back(one("waiter", row));
  const std::size_t waiters = is_there && found->waiters ? found->waiters->size() : 0;
  const bool is_known = place.service->traits().knows_waiters;
  out.fields.push_back({"waiters", is_known ? Cell(std::uint64_t{waiters}) : Cell()});
  return out;
}

void print_changes(const Place& place, bool is_first) {
  const LockService& service = *place.service;
  const auto columns = !service.columns().empty()
                           ? service.columns()
                           : chosen_columns({{"key,host,pid,command"}, Layer::flag, ""});
  const char* came = is_first || service.older_than() ? "present" : "acquired";
  for (const auto& [row, change, profile] : place.rows) {
    const bool is_party = row.holder != nullptr || row.waiter != nullptr;
    if (change == Change::none || !is_party) continue;
    const std::string event = change == Change::gone  ? "gone"
                              : row.waiter != nullptr ? "waiting"
                                                      : came;
    if (service.json()) {
      print_out(print_json_line(object_of(place, row, event, service.columns())));
      continue;
    }
    std::string line = util::utc_now() + "  " + event;
    if (!profile.empty()) line += "  " + util::printable(profile);
    for (const auto* column : columns) line += "  " + cell_text(column->cell(row));
    print_out(line + '\n');
  }
}

std::string clock_time(Deadline instant) { return util::local_in(-since(instant)).substr(15, 8); }

// For how long it has not answered; "" if it does.
std::string silence_of(const Place& place) {
  if (place.why.empty() && (place.due != kNever || since(place.asked) < kSilent)) return "";
  return util::format_duration(std::chrono::floor<std::chrono::seconds>(since(place.asked)));
}

// "" until there is something to say.
std::string first_line(std::span<const Place> places, Millis wanted) {
  const Place& first = places.front();
  const bool is_one = first.profile.empty();
  if (const std::string silence = silence_of(first); is_one && !silence.empty()) {
    return "no answer for " + silence +
           (first.answered ? ", shown as of " + clock_time(*first.answered) : "") +
           (first.why.empty() ? "" : ": " + first.why);
  }
  std::string silent;
  std::size_t locks = 0;
  std::optional<Deadline> answered;
  Millis interval = wanted;
  for (const Place& place : places) {
    const std::string silence = silence_of(place);
    if (!silence.empty()) {
      silent += (silent.empty() ? "no answer from " : ", ") + place.profile + " (" + silence + ')';
    }
    locks += place.now.size();
    answered = std::max(answered, place.answered);
    interval = std::max(interval, place.interval);
  }
  if (!answered) return silent;
  return (silent.empty() ? "" : silent + "; ") + clock_time(*answered) + ", every " +
         util::format_duration(interval) + (interval > wanted ? " (a look takes long): " : ": ") +
         std::to_string(locks) + (locks == 1 ? " lock in " : " locks in ") +
         (is_one ? first.location : std::to_string(places.size()) + " profiles");
}

void draw(std::span<const Place> places, Millis wanted, Columns<LockRow> columns) {
  const std::string first = util::printable(first_line(places, wanted));
  if (first.empty() || is_in_background()) return;
  winsize size{};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const std::size_t height = std::max<std::size_t>(size.ws_row, kLeastHeight);
  const std::size_t width = terminal_width(STDOUT_FILENO);
  const char* no_color = std::getenv("NO_COLOR");
  const bool is_plain = no_color != nullptr && *no_color != 0;

  std::vector<ChangedRow> shown;
  for (const Place& place : places) {
    std::ranges::copy_if(place.rows, std::back_inserter(shown), [&](const ChangedRow& it) {
      const bool is_gone = it.change == Change::gone;
      return it.row.waiter == nullptr && !(is_gone && (is_plain || it.row.holder == nullptr));
    });
  }
  const std::size_t others = keep_longest_held(shown, height - kLeastHeight);
  std::vector<LockRow> rows;
  for (const ChangedRow& it : shown) rows.push_back(it.row);
  if (columns.empty()) columns = list_columns(rows, width);
  Table table = tabulate<LockRow>(columns, rows);
  if (!places.front().profile.empty()) {
    table.heads.insert(table.heads.begin(), {"BACKEND"});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      table.rows[i].insert(table.rows[i].begin(), std::string(shown[i].profile));
    }
  }

  std::string frame = has_screen == 0 ? std::string(height, '\n') : "";  // keeps what was there
  frame += "\x1b[H";
  const auto add = [&](const std::string& line, Change change) {
    const bool is_styled = change != Change::none && !is_plain;
    frame += "\x1b[K";
    if (is_styled) frame += change == Change::came ? "\x1b[1m" : "\x1b[2m";
    frame += util::cut_to_width(line, width) + (is_styled ? "\x1b[m\n" : "\n");
  };
  add(first, Change::none);
  std::istringstream text(print_text(table, width));
  std::string line;
  for (std::size_t i = 0; std::getline(text, line); ++i) {
    add(line, i == 0 ? Change::none : shown[i - 1].change);
  }
  if (others > 0) add("… and " + std::to_string(others) + " more", Change::none);
  take_screen();
  print_out(frame + "\x1b[J");
}

class Watch {
 public:
  Watch(const Invocation& invocation, std::span<const BackendEntry> backends);
  [[noreturn]] void run();

 private:
  void start_look(std::size_t number);
  void wait();
  void take(Place& place);
  void fail(Place& place, const Error& error);
  void tell_if_synced();

  const bool all_;
  std::string only_;  // --exit-when
  Millis wanted_{2'000};
  std::vector<Place> places_;
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
    early_status = exit_status::kNo;
  }
  if (const Setting* time = settings.find("interval")) {
    wanted_ = to_duration(*time, flag("interval"));
  }
  std::vector<std::string> repeated;
  for (const Settings& its : each_backend(invocation, settings)) {
    if (!places_.empty()) util::log_into(&repeated);  // which variables are not read
    Place& place = places_.emplace_back();
    if (all_) place.profile = its.find("backend")->text();
    try {
      place.service = std::make_unique<LockService>(invocation, its, backends);
      json_ = place.service->json();
      columns_ = place.service->columns();
    } catch (const Refusal& refusal) {
      if (!all_) throw;
      util::log_into(nullptr);
      util::log(util::Level::error, refusal.what());
      place.why = refusal.what();
      place.due = kNever;
    }
  }
  util::log_into(nullptr);
  const auto is_usable = [](const Place& it) { return it.service != nullptr; };
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
  Place& place = places_[number];
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
  for (const Place& place : places_) until = std::min(until, place.due);
  const bool has_keys = has_screen != 0 && isatty(STDIN_FILENO) != 0;
  std::array<pollfd, 3> fds{{{ended_[0], POLLIN, 0},
                             {STDOUT_FILENO, 0, 0},  // its reader may be gone
                             {has_keys ? STDIN_FILENO : -1, POLLIN, 0}}};
  util::poll(fds, until);
  if (fds[1].revents != 0) end_watch(early_status);
  char key = 0;
  const bool is_pressed = fds[2].revents != 0 && has_screen != 0;  // not stopped meanwhile
  if (is_pressed && (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q')) end_watch(early_status);
  std::size_t number = 0;
  if (fds[0].revents != 0 && ::read(ended_[0], &number, sizeof number) > 0) take(places_[number]);
}

void Watch::take(Place& place) {
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
void Watch::fail(Place& place, const Error& error) {
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
      places_, [&](const Place& it) { return it.answered || (all_ && !it.why.empty()); });
  if (is_synced_ || !has_all) return;
  is_synced_ = true;
  print_out(print_json_line({{{"time", util::utc_now()}, {"event", "synced"}}}));
}

}  // namespace

int cmd_watch(const Invocation& invocation, std::span<const BackendEntry> backends) {
  Watch(invocation, backends).run();
}

}  // namespace dlock::cli
