// What dlock says on stderr: one line each, and never at the price of a job.
#pragma once

#include <string_view>

namespace dlock::util {

/// error is always said; warning and note are silenced by -q; detail needs -v, trace -vv.
enum class Level { error, warning, note, detail, trace };

/// How much is said: 0 by default, -1 for -q, 1 for -v, 2 for -vv.  `json` turns each line into an
/// object {"level", "message"}.  Set once, before the first line.
void set_log(int verbosity, bool json);

bool log_shows(Level level);

/// Writes `dlock: <message>` and a newline to stderr in one write, control characters escaped.
/// Does not wait: what a full pipe or a stopped terminal does not take now is kept and goes out
/// before a later line or at log_flush().  If 64 KiB are kept, further lines are dropped; their
/// number is written when stderr accepts data again.  Never raises SIGPIPE if that is blocked.
/// Without memory for the line it says "out of memory" instead.
void log(Level level, std::string_view message) noexcept;

/// Whether stderr is a terminal, on which a line can be kept current.
bool log_has_terminal();

/// Shows `message` on the terminal's current line in place of the one shown before; "" wipes it.
/// log() wipes it by itself.  `above`, if any, stays on a line of its own above it, however long it
/// is.  Only for a stderr that is a terminal.
void log_status_line(std::string_view message, std::string_view above = {});

/// How wide the message of a line may be on the terminal.
std::size_t log_columns();

/// Another process may be showing such a line on this terminal: it is wiped before each message,
/// or, if that process shows none any more, before the next one.
void log_beside_status_line(bool is_shown);

/// Writes what was kept.  Waits for the reader, for a second at most.
void log_flush();

/// From now on log() never blocks, even if others fill stderr at the same instant.  Opens a
/// descriptor, to be closed by log_end() alone.
void log_never_blocks();

/// In a process that was forked: forgets what was kept, which the parent will write.
void log_forget();

/// Writes what stderr takes now, and replaces stderr with /dev/null.  Later messages are discarded,
/// and a reader of the old stderr sees end-of-file.
void log_end();

}  // namespace dlock::util
