#include "backends/file/mode_file.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "backends/file/flock_wait.hpp"
#include "backends/file/name.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// A latch is held for microseconds; longer than this its holder is stopped.  It says nothing about
// the lock, so requests that may not wait wait for it, too, and all at least so long.
constexpr Millis kLatchPatience{2'000};
// To find a file that nobody changes: it takes two.
constexpr int kLooks = 100;

// What job~mode holds: `slots      0000000003`.
std::string format_mode(Mode mode, unsigned slots) {
  std::array<char, 32> line{};
  std::snprintf(line.data(), line.size(), "%-9.9s %010u\n", std::string(mode_name(mode)).c_str(),
                slots);
  return line.data();
}

Claim parse_mode_line(std::string_view text) {
  const auto space = text.find(' ');
  const auto mode = parse_mode(text.substr(0, space));
  const auto slots =
      text.size() < 20 ? std::nullopt : util::parse_int(text.substr(10, 10), 1, UINT32_MAX);
  if (!mode || !slots) return {Mode::shared};
  return {*mode, static_cast<unsigned>(*slots)};
}

}  // namespace

Result<LockFile> take_latch(const Place& place, const Request& request, const Wait& wait) {
  const Deadline patience = std::max(wait.until, after(Clock::now(), kLatchPatience));
  for (;;) {
    auto latch = open_lock_file(place, latch_name(place.leaf));
    if (!latch) return latch.error();
    auto got = try_flock(*latch, place, LOCK_EX);
    if (!got) return got.error();
    if (!*got) {
      // Somebody may remove what a stopped process holds: look for another file now and then.
      const Deadline look = std::min(patience, after(Clock::now(), kLatchPatience));
      auto end = wait_flock(place, *latch, LOCK_EX, request.owner.pid, look, wait.cancel);
      if (!end) return end.error();
      if (*end == FlockWait::End::cancelled) {
        return Error{Errc::cancelled, "stopped waiting for " + place.shown};
      }
      if (*end == FlockWait::End::timed_out) {
        if (Clock::now() < patience) continue;
        return Error{Errc::unreachable, "another process holds " +
                                            util::printable(path_of(place, latch->name)) +
                                            " and does not go on: is it stopped?"};
      }
    }
    if (identity_of(*latch, place) == Identity::same) return latch;
  }
}

// What the file says counts only once it is locked.
Result<LockFile> take_mode(const Place& place, const Request& request) {
  const std::string wanted = format_mode(request.mode, request.slots);
  for (int tries = 0; tries < kLooks; ++tries) {
    auto file = open_lock_file(place, mode_file_name(place.leaf));
    if (!file) return file.error();
    auto got = try_flock(*file, place, LOCK_SH);
    if (!got) return got.error();
    if (!*got) continue;  // somebody who has another latch changes it this moment
    std::string written = read_some(file->fd.get());
    if (written != wanted) {
      auto is_free = try_flock(*file, place, LOCK_EX);
      if (!is_free) return is_free.error();
      if (!*is_free) {
        return mode_conflict(request.key, request.claim(), parse_mode_line(written));
      }
      if (::ftruncate(file->fd.get(), 0) != 0) {
        return errno_error(path_of(place, file->name), "cannot write", errno);
      }
      if (auto ok = write_at(*file, place, wanted, 0); !ok) return ok.error();
      unlock(*file);
      continue;
    }
    if (identity_of(*file, place) != Identity::same) continue;
    return file;
  }
  return Error{Errc::unreachable, "another program holds, or goes on changing, " +
                                      path_of(place, mode_file_name(place.leaf))};
}

}  // namespace dlock::file
