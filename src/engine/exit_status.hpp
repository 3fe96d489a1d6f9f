// What the exit statuses of dlock mean.  The man page and --help print this table.
#pragma once

#include <array>
#include <string_view>

namespace dlock::exit_status {

inline constexpr int kNo = 1;            // the plain "no" of the commands that ask
inline constexpr int kUsage = 64;        // EX_USAGE
inline constexpr int kUnreachable = 69;  // EX_UNAVAILABLE
inline constexpr int kInternal = 70;     // EX_SOFTWARE
inline constexpr int kBusy = 75;         // EX_TEMPFAIL
inline constexpr int kDenied = 77;       // EX_NOPERM
inline constexpr int kConfig = 78;       // EX_CONFIG
inline constexpr int kLost = 79;
inline constexpr int kMaxHold = 124;  // as timeout(1)
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kSignalBase = 128;

struct Row {
  std::string_view status;
  std::string_view meaning;
};

inline constexpr std::array kTable{
    Row{"the command's",
        "the command ran to its end under the lock; dlock once: 0, or that of --done-exit-code, "
        "also if the job was done before"},
    Row{"128+N",
        "the command died of signal N, or dlock was ended by signal N while it waited; dlock "
        "once: also if dlock passed signal N on to the command, which then exited with 0"},
    Row{"75 (or -E N)",
        "not acquired: the lock was held until the wait was over, or dlock was suspended when "
        "it was granted"},
    Row{"79",
        "the lock was lost while the command ran, and the command was ended; wins over the "
        "command's own status; in a nested run also: --max-hold of the outer run is over; "
        "dlock renew: the lock was lost before"},
    Row{"124", "--max-hold ended the command"},
    Row{"69",
        "the backend did not answer at the start, or when the wait was over (-E does not change "
        "that); too few of its servers answer; the outer run does not answer a nested one; or "
        "dlock once: the command succeeded, and that could not be remembered"},
    Row{"77", "the backend refused us: credentials, ACL, grants, file permissions"},
    Row{"64",
        "bad command line; the key is in use in another mode; or the server cannot do what is "
        "asked, as without the database"},
    Row{"78", "bad config file"},
    Row{"70", "internal error"},
    Row{"126", "the command is not executable; the lock was released"},
    Row{"127", "the command was not found; the lock was released"},
};

}  // namespace dlock::exit_status
