// The messages of dlock on stderr, one line each.  A message never delays a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlock::util {

/// error is always printed; -q suppresses warning and note; detail needs -v, trace -vv.
enum class Level { error, warning, note, detail, trace };

/// `verbosity` is 0 by default, -1 for -q, 1 for -v, 2 for -vv.  With `json`, each line is a JSON
/// object with "level" and "message".  Call it before the first message.
void set_log(int verbosity, bool json);

bool log_shows(Level level);

/// Writes `dlock: <message>` and a newline to stderr in one write, with control characters escaped.
/// Never waits: text that a full pipe or a stopped terminal does not accept is kept, and written
/// before a later line or by log_flush().  If 64 KiB are kept, further lines are dropped, and their
/// number is written when stderr accepts data again.  Does not raise SIGPIPE if that signal is
/// blocked.  Without memory for the line, writes "out of memory".
void log(Level level, std::string_view message) noexcept;

/// While it lives, errors and warnings are added to `kept` and not written.
class LogInto {
 public:
  explicit LogInto(std::vector<std::string>& kept);
  ~LogInto();
  LogInto(const LogInto&) = delete;
  LogInto& operator=(const LogInto&) = delete;
};

/// Whether stderr is a terminal, so that a line can be redrawn.
bool log_has_terminal();

/// Shows `message` on the terminal's current line, in place of the previous one; "" erases it.
/// log() erases it first. `above`, if not empty, is printed whole on a line of its own above it.
/// Call it only if stderr is a terminal.
void log_status_line(std::string_view message, std::string_view above = {});

/// The number of columns for the message of a status line.
std::size_t log_columns();

/// Another process shows a status line on this terminal: erase it before each message.  With false,
/// that process has stopped: erase it before the next message only.
void log_beside_status_line(bool is_shown);

/// Writes the kept text.  Waits for the reader for at most one second.
void log_flush();

/// From now on, log() never blocks, even if other processes fill stderr at the same moment.  Opens
/// a descriptor that log_end() closes.
void log_never_blocks();

/// For a forked process: discards the kept text, which the parent writes.
void log_forget();

/// Writes the text that stderr accepts now, and replaces stderr by /dev/null.  Later messages are
/// discarded, and the reader of the old stderr sees the end of the file.
void log_end();

}  // namespace dlock::util
