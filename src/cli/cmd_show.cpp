#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/cmd.hpp"
#include "cli/lock_form.hpp"
#include "cli/lock_service.hpp"
#include "cli/mark_columns.hpp"
#include "cli/period.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "engine/exit_status.hpp"
#include "util/log.hpp"
#include "util/near_match.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// The done-marks that dlock once would find now, with or without --every.  None if the backend has
// no done-marks.
std::optional<std::vector<Mark>> marks_of(Backend& backend, const std::string& key,
                                          Deadline deadline) {
  std::vector<std::string> periods{""};
  for (const Every every : {Every::hour, Every::day, Every::week}) {
    periods.push_back(period_of(every, std::chrono::system_clock::now()));
  }
  std::vector<Mark> out;
  for (const std::string& period : periods) {
    auto mark = backend.find_mark({key, period}, deadline);
    if (!mark) {
      if (mark.error().code == Errc::unsupported) return std::nullopt;
      util::log(util::Level::warning, "cannot tell whether it is done: " + mark.error().message);
      return std::nullopt;
    }
    if (*mark) out.push_back(std::move(**mark));
  }
  return out;
}

// The held keys, at most three, that differ from this one by case or by a few letters.
std::string held_instead(Backend& backend, const std::string& key, Deadline deadline) {
  constexpr std::size_t kMost = 3;
  auto found = backend.list("", deadline);
  if (!found) return "";
  std::vector<std::string> lower;
  for (const LockInfo& lock : found.value()) lower.push_back(util::lower(lock.key));
  std::vector<std::string_view> words(lower.begin(), lower.end());
  std::string out;
  for (std::size_t i = 0; i < kMost; ++i) {
    const std::string_view near = util::near_match(util::lower(key), words);
    if (near.empty()) break;
    const auto at = std::ranges::find(words, near);
    out +=
        (out.empty() ? "" : ", ") + found.value()[static_cast<std::size_t>(at - words.begin())].key;
    *at = "";  // not again
  }
  return out;
}

std::string for_people(const LockInfo& lock, const std::vector<Mark>& marks,
                       const LockService& service, Backend& backend) {
  const std::size_t width = terminal_width(STDOUT_FILENO);
  std::string out = lock_form(lock, marks, service, backend, width);
  if (width == kAnyWidth) return out;
  if (!lock.holders.empty()) return out + '\n' + ways_to_end(lock, service);
  const std::string near = held_instead(backend, lock.key, service.patience());
  return near.empty() ? out : out + hanging("Held are", util::printable(near), 2, kValues, width);
}

std::string as_json(const LockInfo& lock, const std::optional<std::vector<Mark>>& marks,
                    const Columns<LockRow>& columns) {
  Object object = lock_object(lock, columns);
  if (columns.empty()) {
    object.fields.push_back({"done", {}, {}});
    if (marks) object.fields.back().list = mark_objects(*marks);
  }
  return print_json(object);
}

std::string of_columns(const LockInfo& lock, const Columns<LockRow>& columns) {
  if (lock.holders.empty()) return "";
  const auto rows = holder_rows(lock);
  return print_text(tabulate<LockRow>(columns, rows), terminal_width(STDOUT_FILENO));
}

}  // namespace

int cmd_show(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const std::string& key = key_operand(invocation);
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  const auto lock = backend.value()->inspect(key, service.patience());
  if (!lock) return service.report(lock.error());
  const LockInfo& info = lock.value();
  const auto& columns = service.columns();
  const auto marks =
      columns.empty() ? marks_of(*backend.value(), key, service.patience()) : std::vector<Mark>();
  const int wrote =
      write_stdout(service.json()    ? as_json(info, marks, columns)
                   : columns.empty() ? for_people(info, marks.value_or(std::vector<Mark>()),
                                                  service, *backend.value())
                                     : of_columns(info, columns));
  return info.holders.empty() ? exit_status::kNo : wrote;
}

}  // namespace dlock::cli
