// The terminal of `dlock watch`, and how it ends.
#pragma once

#include <span>
#include <string_view>

#include "cli/watched_place.hpp"

namespace dlock::cli {

/// A signal ends the process at once, with the terminal as it was; unless it is ignored, by nohup.
void heed(int sig);

/// The exit status if the user, or the reader of stdout, ends it early.
void set_early_status(int status);
int early_status();

/// Whether the table is on the screen.
bool has_screen();

/// Gives the terminal back.
void leave_screen();

/// Does not wait for a look that is under way.
[[noreturn]] void end_watch(int status);

/// Writes all of it to stdout, or ends the process.
void print_out(std::string_view text);

/// Draws the table of `list` in place of the last one.  Nothing in the background, where a process
/// that changes the terminal is stopped.
void draw(std::span<const WatchedPlace> places, Millis wanted, Columns<LockRow> columns);

}  // namespace dlock::cli
