#include "cli/cmd_list.hpp"

#include <unistd.h>

#include <string>

#include "cli/lock_service.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
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

int print(const LockService& service, const Backend& backend, const Listing& found,
          const std::string& prefix) {
  if (service.json()) return print_as_json(service, backend, found);
  if (!found.locks.empty()) return print_as_text(service, found.locks);
  if (!found.missing.empty()) return 0;
  // Whoever asked the wrong place should see which it was.
  util::log(util::Level::note,
            "no locks" + (prefix.empty() ? "" : " that begin with " + util::in_quotes(prefix)) +
                (service.older_than() ? " as old as that" : "") + " in " + backend.location());
  return 0;
}

}  // namespace

int cmd_list(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const std::string prefix = invocation.operands.empty() ? "" : invocation.operands.front();
  const auto backend = service.open();
  if (!backend) return report(backend.error());
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
