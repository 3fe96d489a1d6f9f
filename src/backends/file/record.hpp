// What stands in a lock file: a header line with the fence, then the record of the holder.
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
  std::uint64_t fence = 0;  // no larger one was given
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
};

inline constexpr std::size_t kHeaderSize = 107;
/// Most that is ever read of a lock file: whatever is longer was not written by us.
inline constexpr std::size_t kMostRead = 64 * 1024;

std::string format_header(const Header& header);
/// None for anything that format_header() did not write.
std::optional<Header> parse_header(std::string_view text);

/// The header for the next grant; `sync`: it must be on the disk before the grant is given.
struct NextGrant {
  Header header;
  bool sync = false;
};
/// `last` is none for a file that was never used.  `now_ms`: milliseconds since 1970.
NextGrant next_grant(const std::optional<Header>& last, std::uint64_t now_ms, Mode mode,
                     unsigned slots);

/// The line about one holder: behind the header in the lock file (exclusive), or at the start of a
/// seat file (shared, slots).
struct Record {
  Owner owner;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::string acquired_at;
  std::optional<std::uint64_t> fence;
  std::string boot;              // of the numbers below
  std::int64_t acquired_ns = 0;  // CLOCK_BOOTTIME
  std::uint64_t pid_namespace = 0;
  pid_t lock_pid = 0;     // as /proc/locks has it for this file
  pid_t main_pid = 0;     // of a seat: as /proc/locks has it for the lock file
  bool given_up = false;  // it is only still there because nobody came after
};

/// Ends in a newline, fits kMostRead.
std::string format_record(const Record& record);
/// Reads the first line of `text`; none if it is no record.
std::optional<Record> parse_record(std::string_view text);
/// Written over a record's first byte, makes it `given_up`, or its owner one whose command has
/// ended.
inline constexpr char kGivenUp = '-';
inline constexpr char kCommandEnded = '+';

/// Left by force_release() for the holder it took the lock from: a line each, the newest first.
struct Note {
  std::string revoked;  // owner id
  std::string why;
};
std::string format_note(const Note& note);
std::optional<Note> find_note(std::string_view text, std::string_view owner_id);

}  // namespace dlock::file
