#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/cmd.hpp"
#include "cli/layers.hpp"
#include "cli/lock_service.hpp"
#include "cli/mark_columns.hpp"
#include "cli/other_users.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/source.hpp"
#include "cli/values.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

int print_as_json(const LockService& service, const Backend& backend, const Listing& found) {
  std::vector<Object> objects;
  for (const LockInfo& lock : found.locks) objects.push_back(lock_object(lock, service.columns()));
  Object out{{{"backend", backend.location()}, {"locks", {}, std::move(objects)}}};
  Lines missing;
  for (const Error& error : found.missing) missing.push_back(error.message);
  if (!missing.empty()) out.fields.push_back({"missing", std::move(missing)});
  return write_stdout(print_json(out));
}

std::string count_of(std::size_t count, const std::string& thing) {
  return std::to_string(count) + ' ' + thing + (count == 1 ? "" : "s");
}

// Printed below a table on a terminal, because asking the wrong backend is the most frequent
// mistake.
void tell_where(const LockService& service, const Backend& backend, const Listing& found) {
  std::size_t holders = 0;
  for (const LockInfo& lock : found.locks) holders += lock.holders.size();
  if (isatty(STDOUT_FILENO) == 0 || !util::log_shows(util::Level::note)) return;
  const std::string line = count_of(holders, "holder") + " of " +
                           count_of(found.locks.size(), "lock") + " in " +
                           util::printable(service.place(backend.location()));
  util::write_all(STDERR_FILENO, wrap(line, 0, terminal_width(STDERR_FILENO)));
}

int print_as_text(const LockService& service, const Backend& backend, const Listing& found) {
  std::vector<LockRow> rows;
  for (const LockInfo& lock : found.locks) {
    for (const LockRow& row : holder_rows(lock)) rows.push_back(row);
  }
  const std::size_t width = terminal_width(STDOUT_FILENO);
  const auto columns = service.columns().empty() ? list_columns(rows, width) : service.columns();
  const Table table = tabulate<LockRow>(columns, rows);
  const int status = write_stdout(print_text(table, width));
  tell_where(service, backend, found);
  return status;
}

// Where root, who does not see them in its own list, can look for more.
std::string of_other_users(const LockService& service) {
  const OtherUsers others =
      service.is_default_directory() ? other_users_directories() : OtherUsers();
  if (others.places.empty()) return "";
  return "; locks of other users of this machine: " + others.places + ". Use: runuser -u " +
         others.user + " -- dlock list";
}

int print(const LockService& service, const Backend& backend, const Listing& found) {
  if (service.json()) return print_as_json(service, backend, found);
  if (!found.locks.empty()) return print_as_text(service, backend, found);
  if (!found.missing.empty()) return 0;
  util::log(util::Level::note, "no locks" + service.wanted().in_words() +
                                   (service.older_than() ? " as old as that" : "") + " in " +
                                   service.place(backend.location()) + of_other_users(service));
  return 0;
}

int list_done(const LockService& service, Backend& backend) {
  const KeyPrefixes& wanted = service.wanted();
  auto found = backend.list_marks(wanted.common(), kNever);
  if (!found) return service.report(found.error());
  std::vector<Mark>& marks = found.value();
  std::erase_if(marks, [&](const Mark& mark) { return !wanted.has(mark.name.key); });
  if (const auto age = service.older_than()) {
    std::erase_if(marks, [&](const Mark& mark) { return mark.age <= *age; });
  }
  if (service.json()) {
    return write_stdout(
        print_json(Object{{{"backend", backend.location()}, {"done", {}, mark_objects(marks)}}}));
  }
  if (marks.empty()) {
    util::log(util::Level::note, "no jobs" + wanted.in_words() + " are remembered as done" +
                                     (service.older_than() ? " longer ago than that" : "") +
                                     " in " + service.place(backend.location()));
    return 0;
  }
  return write_stdout(print_text(mark_table(marks), terminal_width(STDOUT_FILENO)));
}

}  // namespace

int cmd_list(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const Setting* done = effective(service.settings(), flag("done"));
  if (done != nullptr) refuse_if_forgetful(service.entry(), kForgetsJobs, backends);
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  if (done != nullptr) return list_done(service, *backend.value());
  const auto found = service.list(*backend.value());
  if (!found) return service.report(found.error());
  int status = print(service, *backend.value(), found.value());
  for (const Error& error : found.value().missing) status = service.report(error);
  return status;
}

}  // namespace dlock::cli
