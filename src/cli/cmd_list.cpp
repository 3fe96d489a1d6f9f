#include "cli/cmd_list.hpp"

#include <unistd.h>

#include <string>

#include "cli/layers.hpp"
#include "cli/lock_service.hpp"
#include "cli/mark_columns.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/source.hpp"
#include "cli/values.hpp"
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

int print_as_text(const LockService& service, const std::vector<LockInfo>& locks) {
  std::vector<LockRow> rows;
  for (const LockInfo& lock : locks) {
    for (const LockRow& row : holder_rows(lock)) rows.push_back(row);
  }
  const auto columns = service.columns().empty() ? list_columns(rows) : service.columns();
  const Table table = tabulate<LockRow>(columns, rows);
  return write_stdout(print_text(table, terminal_width(STDOUT_FILENO)));
}

std::string that_begin_with(const std::string& prefix) {
  return prefix.empty() ? "" : " that begin with " + util::in_quotes(prefix);
}

int print(const LockService& service, const Backend& backend, const Listing& found,
          const std::string& prefix) {
  if (service.json()) return print_as_json(service, backend, found);
  if (!found.locks.empty()) return print_as_text(service, found.locks);
  if (!found.missing.empty()) return 0;
  // Whoever asked the wrong place should see which it was.
  util::log(util::Level::note, "no locks" + that_begin_with(prefix) +
                                   (service.older_than() ? " as old as that" : "") + " in " +
                                   backend.location());
  return 0;
}

int list_done(const LockService& service, Backend& backend, const std::string& prefix) {
  auto found = backend.list_marks(prefix, kNever);
  if (!found) return report(found.error());
  std::vector<Mark>& marks = found.value();
  if (const auto age = service.older_than()) {
    std::erase_if(marks, [&](const Mark& mark) { return mark.age <= *age; });
  }
  if (service.json()) {
    return write_stdout(
        print_json(Object{{{"backend", backend.location()}, {"done", {}, mark_objects(marks)}}}));
  }
  if (marks.empty()) {
    util::log(util::Level::note, "no jobs" + that_begin_with(prefix) + " are remembered as done" +
                                     (service.older_than() ? " longer ago than that" : "") +
                                     " in " + backend.location());
    return 0;
  }
  return write_stdout(
      print_text(mark_table(MarksOf::all_keys, marks), terminal_width(STDOUT_FILENO)));
}

}  // namespace

int cmd_list(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const Setting* done = effective(service.settings(), flag("done"));
  const std::string prefix = invocation.operands.empty() ? "" : invocation.operands.front();
  if (done != nullptr) refuse_if_forgetful(service.entry(), kForgetsJobs, backends);
  const auto backend = service.open();
  if (!backend) return report(backend.error());
  if (done != nullptr) return list_done(service, *backend.value(), prefix);
  auto found = backend.value()->list_reachable(prefix, kNever);
  if (!found) return report(found.error());
  if (const auto age = service.older_than()) {
    for (LockInfo& lock : found->locks) lock = with_older_holders(lock, *age);
    std::erase_if(found->locks, [](const LockInfo& lock) { return lock.holders.empty(); });
  }
  int status = print(service, *backend.value(), *found, prefix);
  for (const Error& error : found->missing) status = report(error);
  return status;
}

}  // namespace dlock::cli
