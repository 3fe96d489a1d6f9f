// Sweep. Before a job runs, not after it: its release, and the next holder, do not wait for that.
//        A run adds one mark at most, and looks at some by chance, so in the long run most of the
//        marks that are kept are still remembered.
#include "core/marks.hpp"

#include <algorithm>

namespace dlock {
namespace {

// The job waits for the sweep, and the lease runs: of the time that is left, the sweep may take one
// part in kSweepShare.
constexpr Millis kSweep{1'000};
constexpr int kSweepShare = 8;

// None if the text is no mark.
std::optional<Mark> mark_of(const StoredRecord& record, std::int64_t now) {
  auto said = parse_mark(record.text);
  if (!said) return std::nullopt;
  now = std::clamp<std::int64_t>(now, 0, INT64_MAX / 2);
  const std::int64_t latest = now + kLongestRemembered.count();
  const Millis since{now - std::clamp<std::int64_t>(record.written, 0, latest)};
  return Mark{.name = {record.name.key, record.name.period},
              .owner = std::move(said->owner),
              .fence = said->fence,
              .done_at = std::move(said->done_at),
              .age = std::max(since, Millis{0}),
              .left = said->remember - since};
}

bool is_over(const Mark& mark) { return mark.left <= Millis{0}; }

void sweep(Records& records, std::string_view key, Deadline deadline) {
  const Deadline begin = Clock::now();
  deadline = after(begin, std::min(remaining(deadline, begin) / kSweepShare, kSweep));
  auto look = records.sample(key, deadline);
  if (!look) return;
  std::erase_if(look->records, [&](const StoredRecord& record) {
    const auto mark = mark_of(record, look->now);
    return !mark || !is_over(*mark);
  });
  if (!look->records.empty()) (void)records.remove(look->records, deadline);
}

}  // namespace

RecordName record_of(const MarkName& name) { return {RecordKind::mark, name.key, name.period}; }

Result<std::optional<Mark>> find_mark(Records& records, const MarkName& name, Deadline deadline) {
  const auto look = records.read(record_of(name), deadline);
  if (!look) return look.error();
  if (look.value().records.empty()) return std::optional<Mark>();
  auto mark = mark_of(look.value().records.front(), look.value().now);
  if (!mark) return no_record(records.shown(record_of(name)));
  if (is_over(*mark)) return std::optional<Mark>();
  return mark;
}

Result<void> prepare_marks(Records& records, std::string_view key, Deadline deadline) {
  auto ready = records.prepare(key, deadline);
  sweep(records, key, deadline);
  // There may be room now.
  return ready ? ready : records.prepare(key, deadline);
}

Result<std::vector<Mark>> list_marks(Records& records, std::string_view prefix, Deadline deadline) {
  const auto look = records.list(prefix, deadline);
  if (!look) return look.error();
  std::vector<Mark> marks;
  for (const StoredRecord& record : look.value().records) {
    auto mark = mark_of(record, look.value().now);
    if (mark && !is_over(*mark)) marks.push_back(std::move(*mark));
  }
  std::sort(marks.begin(), marks.end(),
            [](const Mark& one, const Mark& two) { return one.name < two.name; });
  return marks;
}

// What was seen first is forgotten, and no mark that a job leaves meanwhile.
Result<bool> forget_mark(Records& records, const MarkName& name, Deadline deadline) {
  std::optional<StoredRecord> first;
  for (;;) {
    auto look = records.read(record_of(name), deadline);
    if (!look) return look.error();
    const bool is_there = !look->records.empty();
    if (first) {
      const bool is_same = is_there && look->records.front().text == first->text &&
                           look->records.front().written == first->written;
      if (!is_same) return true;
    } else {
      const auto mark =
          is_there ? mark_of(look->records.front(), look->now) : std::optional<Mark>();
      if (!mark || is_over(*mark)) return false;
    }
    first = std::move(look->records.front());
    const auto removed = records.remove({&*first, 1}, deadline);
    if (!removed) return removed.error();
    if (removed.value() == 1) return true;
    if (Clock::now() >= deadline) {
      return Error{Errc::unreachable, records.shown(first->name) + " is written again and again"};
    }
  }
}

}  // namespace dlock
