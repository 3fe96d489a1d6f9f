// The content of a lock file, a header line with the fence, and of a registration, a record.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock::file {

/// The first line of a lock file, of fixed width so that one small write replaces it.
struct Header {
  std::uint64_t fence = 0;  // of the newest grant
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
};

inline constexpr std::size_t kLockHeaderSize = 107;
/// Most that is ever read of a record: a longer one was not written by dlock.
inline constexpr std::size_t kMostRead = 64 * 1024;

std::string format_header(const Header& header);
/// None for anything that format_header() did not write.
std::optional<Header> parse_header(std::string_view text);

/// The header for the next grant; `sync`: it must be on the disk before that.
struct NextGrant {
  Header header;
  bool sync = false;
};
/// `last` is none for a file that was never used.  `now_us`: microseconds since 1970.
NextGrant next_grant(const std::optional<Header>& last, std::uint64_t now_us, Mode mode,
                     unsigned slots);

/// The line about one holder or waiter, in its registration (registration.hpp).
struct Record {
  Owner owner;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::int64_t since_ns = 0;  // CLOCK_BOOTTIME of the grant, or of the beginning of the wait
  // Of a holder:
  std::string acquired_at;
  std::optional<std::uint64_t> fence;
  std::optional<unsigned> slot;
};

/// Ends in a newline, fits kMostRead.
std::string format_record(const Record& record);
/// Reads the first line of `text`; none if it is no record.
std::optional<Record> parse_record(std::string_view text);

/// The line that force_release() writes for the holder.
std::string format_revocation(std::string_view why);
/// None if `text` does not begin with such a line.
std::optional<std::string> parse_revocation(std::string_view text);

}  // namespace dlock::file
