#include "cli/cmd_show.hpp"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/lock_form.hpp"
#include "cli/lock_service.hpp"
#include "cli/mark_columns.hpp"
#include "cli/period.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "engine/exit_status.hpp"
#include "util/log.hpp"

namespace dlock::cli {
namespace {

// What dlock once would find now, with or without --every; none if the backend does not say.
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

std::string for_people(const LockInfo& lock, const std::vector<Mark>& marks,
                       const LockService& service, const Backend& backend) {
  const std::size_t width = terminal_width(STDOUT_FILENO);
  std::string out = lock_form(lock, marks, service, backend, width);
  if (lock.holders.empty() || width == kAnyWidth) return out;
  return out + '\n' + ways_to_end(lock, service);
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
  if (!backend) return report(backend.error());
  const auto lock = backend.value()->inspect(key, service.patience());
  if (!lock) return report(lock.error());
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
