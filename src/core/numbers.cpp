#include "core/numbers.hpp"

#include <algorithm>

#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock {

Millis window_length(std::uint64_t count) {
  return Millis{static_cast<std::int64_t>((count + kIdsPerMs - 1) / kIdsPerMs)};
}

std::uint64_t snowflake_id(const IdWindow& window, std::uint64_t index) {
  const auto ms = static_cast<std::uint64_t>(window.start) + index / kIdsPerMs;
  return ms << 22 | std::uint64_t{window.worker} << 12 | index % kIdsPerMs;
}

std::string format_worker_ends(const WorkerEnds& ends) {
  std::string out;
  for (const std::int64_t end : ends) out += (out.empty() ? "" : " ") + std::to_string(end);
  return out;
}

std::optional<WorkerEnds> parse_worker_ends(std::string_view text) {
  WorkerEnds out;
  while (!text.empty()) {
    const auto space = std::min(text.find(' '), text.size());
    const auto end = util::parse_int(text.substr(0, space), 0, kLastIdMs);
    if (!end || out.size() == kWorkers) return std::nullopt;
    out.push_back(*end);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

Result<void> check_window(const IdWindow& window, std::int64_t now_ms, std::string_view service) {
  const Millis ahead{window.start + kIdEpochMs - now_ms};
  if (ahead > kMostAhead) {
    return Error{Errc::busy, std::string(service) + ": the next ids are " +
                                 util::format_duration(ahead) +
                                 " ahead of its clock: the clock was set back, or too many ids "
                                 "were taken; try again later"};
  }
  if (window.end > kLastIdMs) {
    return Error{Errc::invalid,
                 std::string(service) + ": the ids end in 2094, and its clock is at or after that"};
  }
  return {};
}

// A worker that was never used has the earliest end of all.
Result<IdWindow> take_window(WorkerEnds& ends, std::int64_t now_ms, Millis length,
                             std::string_view service) {
  WorkerEnds::iterator first;
  const bool is_new = ends.size() < kWorkers;
  if (is_new) {
    first = ends.insert(ends.end(), 0);
  } else {
    first = std::min_element(ends.begin(), ends.end());
  }
  IdWindow window{.worker = static_cast<unsigned>(first - ends.begin())};
  window.start = std::max(*first, now_ms - kIdEpochMs);
  window.end = window.start + length.count();
  if (auto ok = check_window(window, now_ms, service); !ok) {
    if (is_new) ends.pop_back();
    return ok.error();
  }
  *first = window.end;
  return window;
}

Error counter_is_full(std::string_view name) {
  return {Errc::invalid, "the counter " + util::in_quotes(name) +
                             " has not so many numbers left: its last one is " +
                             std::to_string(kLastNumber)};
}

Error not_a_counter(const std::string& where) {
  return {Errc::conflict, where + " holds something else than a counter of dlock"};
}

Result<std::uint64_t> numbers_after(std::string_view name, std::uint64_t last,
                                    std::uint64_t count) {
  if (last > kLastNumber || count > kLastNumber - last) return counter_is_full(name);
  return last + 1;
}

}  // namespace dlock
