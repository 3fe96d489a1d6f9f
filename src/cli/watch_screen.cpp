// The table is drawn from the top of the screen, so it does not matter what a resized terminal has
// done to the lines.  There is no alternate screen: the last table stays.
#include "cli/watch_screen.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "cli/print_text.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"
#include "util/width.hpp"

namespace dlock::cli {
namespace {

constexpr Millis kSilent{2'000};         // a look that takes longer is mentioned
constexpr std::size_t kLeastHeight = 4;  // first line, headings, "... and 17 more", cursor

// For the signal handler.
termios settings_before{};
volatile sig_atomic_t is_drawn = 0;
volatile sig_atomic_t status_of_user =
    0;  // of a user who ends it; --exit-when: the lock is not free

// A process in the background is stopped if it changes the terminal.
bool is_in_background() {
  const pid_t group = tcgetpgrp(STDOUT_FILENO);
  return group >= 0 && group != getpgrp();
}

// Works at once, even if this process waits for the reader of a full pipe.
void end_or_stop(int sig) {
  leave_screen();
  if (status_of_user == 0 && (sig == SIGINT || sig == SIGTERM)) ::_exit(0);
  signal(sig, SIG_DFL);
  raise(sig);
}

// Is repeated, because a shell changes the settings while this process is stopped.
void take_screen() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  if (is_drawn == 0) tcgetattr(STDIN_FILENO, &settings_before);
  is_drawn = 1;
  heed(SIGTSTP);
  termios silent = settings_before;
  silent.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &silent);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

std::string clock_time(Deadline instant) { return util::local_in(-since(instant)).substr(15, 8); }

// For how long it has not answered; "" if it does.
std::string silence_of(const WatchedPlace& place) {
  if (place.why.empty() && (place.due != kNever || since(place.asked) < kSilent)) return "";
  return util::format_duration(std::chrono::floor<std::chrono::seconds>(since(place.asked)));
}

// "" until there is something to say.
std::string first_line(std::span<const WatchedPlace> places, Millis wanted) {
  const WatchedPlace& first = places.front();
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
  for (const WatchedPlace& place : places) {
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

}  // namespace

void heed(int sig) {
  if (signal(sig, end_or_stop) == SIG_IGN) signal(sig, SIG_IGN);  // by nohup
}

void set_early_status(int status) { status_of_user = status; }
int early_status() { return status_of_user; }

bool has_screen() { return is_drawn != 0; }

void leave_screen() {
  if (is_drawn != 0 && !is_in_background()) tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
  is_drawn = 0;
}

void end_watch(int status) {
  leave_screen();
  util::log_flush();
  ::_exit(status);
}

void print_out(std::string_view text) {
  if (util::write_all(STDOUT_FILENO, text)) return;
  end_watch(errno == EPIPE ? status_of_user : write_stdout(text));
}

void draw(std::span<const WatchedPlace> places, Millis wanted, Columns<LockRow> columns) {
  const std::string first = util::printable(first_line(places, wanted));
  if (first.empty() || is_in_background()) return;
  winsize size{};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const std::size_t height = std::max<std::size_t>(size.ws_row, kLeastHeight);
  const std::size_t width = terminal_width(STDOUT_FILENO);
  const char* no_color = std::getenv("NO_COLOR");
  const bool is_plain = no_color != nullptr && *no_color != 0;

  std::vector<ChangedRow> shown;
  for (const WatchedPlace& place : places) {
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

  std::string frame = is_drawn == 0 ? std::string(height, '\n') : "";  // keeps what was there
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

}  // namespace dlock::cli
