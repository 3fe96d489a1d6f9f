#include "core/numbers.hpp"

#include <algorithm>

#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

// Ok if a window may start there, and end there.
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

Error too_many(const Records& records, const RecordName& name) {
  return {Errc::unreachable, records.shown(name) + ": too many others take numbers at this moment"};
}

// Gives the record the text that `change` makes of its text, or of `first` if there is none, and
// again while others write it: Result<std::string>(const std::string& text, std::int64_t now).
template <class Change>
Result<void> change_record(Records& records, const RecordName& name, const std::string& first,
                           Deadline deadline, Change change) {
  do {
    const auto look = records.read(name, deadline);
    if (!look) return look.error();
    const bool is_there = !look.value().records.empty();
    const StoredRecord before =
        is_there ? look.value().records.front() : StoredRecord{.name = name, .text = first};
    const auto text = change(before.text, look.value().now);
    if (!text) return text.error();
    const auto written = records.write(name, before.version, text.value(), deadline);
    if (!written) return written.error();
    if (written.value()) return {};
  } while (Clock::now() < deadline);
  return too_many(records, name);
}

}  // namespace

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

// A worker whose window is over comes before one that was never used: the text stays short.
Result<IdWindow> take_window(WorkerEnds& ends, std::int64_t now_ms, Millis length,
                             std::string_view service) {
  const std::int64_t now = now_ms - kIdEpochMs;
  auto first = std::min_element(ends.begin(), ends.end());
  const bool is_new = first == ends.end() || (*first > now && ends.size() < kWorkers);
  IdWindow window{
      .worker = static_cast<unsigned>(is_new ? ends.size() : std::size_t(first - ends.begin()))};
  window.start = is_new ? std::max<std::int64_t>(now, 0) : std::max(*first, now);
  window.end = window.start + length.count();
  if (auto ok = check_window(window, now_ms, service); !ok) return ok.error();
  if (is_new) {
    ends.push_back(window.end);
  } else {
    *first = window.end;
  }
  return window;
}

Result<std::uint64_t> take_numbers(Records& records, std::string_view name, std::uint64_t count,
                                   Deadline deadline) {
  const RecordName counter{RecordKind::number, std::string(name), ""};
  std::int64_t last = 0;
  const auto taken = change_record(
      records, counter, "0", deadline,
      [&](const std::string& text, std::int64_t) -> Result<std::string> {
        const auto number = util::parse_int(text, 0, INT64_MAX);
        if (!number) return no_record(records.shown(counter));
        last = *number;
        if (count > kLastNumber - static_cast<std::uint64_t>(last)) {
          return Error{Errc::invalid, "the counter " + util::in_quotes(counter.key) +
                                          " has not so many numbers left: its last one is " +
                                          std::to_string(kLastNumber)};
        }
        return std::to_string(static_cast<std::uint64_t>(last) + count);
      });
  if (!taken) return taken.error();
  return static_cast<std::uint64_t>(last) + 1;
}

Result<IdWindow> lease_window(Records& records, std::string_view service, Millis length,
                              Deadline deadline) {
  const RecordName workers{RecordKind::number, "", ""};
  IdWindow window;
  const auto taken =
      change_record(records, workers, "", deadline,
                    [&](const std::string& text, std::int64_t now) -> Result<std::string> {
                      auto ends = parse_worker_ends(text);
                      if (!ends) return no_record(records.shown(workers));
                      auto next = take_window(*ends, now, length, service);
                      if (!next) return next.error();
                      window = *next;
                      return format_worker_ends(*ends);
                    });
  if (!taken) return taken.error();
  return window;
}

}  // namespace dlock
