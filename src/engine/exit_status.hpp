// The exit statuses of dlock.  dlock(1), EXIT STATUS, says what each means.
#pragma once

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

}  // namespace dlock::exit_status
