#include "cli/cmd_show.hpp"

#include <unistd.h>

#include <string>

#include "cli/lock_service.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "engine/exit_status.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

std::string how_held(const LockInfo& lock) {
  const std::size_t count = lock.holders.size();
  if (count == 0) return "free";
  switch (lock.mode) {
    case Mode::exclusive:
      return "held exclusively";
    case Mode::shared:
      return "shared by " + std::to_string(count);
    case Mode::slots:
      break;
  }
  return "held in " + std::to_string(count) + " of " + std::to_string(lock.slots) + " slots";
}

std::string headline(const LockInfo& lock, const Backend& backend) {
  std::string out =
      util::in_quotes(lock.key) + " is " + how_held(lock) + " in " + backend.location_of(lock.key);
  if (lock.nodes_total > 1) {
    out += " (" + std::to_string(lock.nodes_agreeing) + " of " + std::to_string(lock.nodes_total) +
           " servers agree)";
  }
  out += '\n';
  for (const std::string& remark : lock.remarks) out += "  " + util::printable(remark) + '\n';
  return out;
}

std::string for_people(const LockInfo& lock, const Backend& backend) {
  const std::size_t width = terminal_width(STDOUT_FILENO);
  std::string out = headline(lock, backend);
  if (!lock.holders.empty()) {
    const auto rows = holder_rows(lock);
    out += '\n' + print_text(tabulate<LockRow>(holder_columns(rows), rows), width);
  }
  if (lock.waiters && !lock.waiters->empty()) {
    const auto rows = waiter_rows(lock);
    out += '\n' + std::to_string(rows.size()) +
           (rows.size() == 1 ? " waiter:\n\n" : " waiters, in their order:\n\n") +
           print_text(tabulate<LockRow>(waiter_columns(rows), rows), width);
  }
  return out;
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
  const int wrote = write_stdout(service.json() ? print_json(lock_object(info, service.columns()))
                                 : !service.columns().empty() ? of_columns(info, service.columns())
                                                              : for_people(info, *backend.value()));
  return info.holders.empty() ? exit_status::kNo : wrote;
}

}  // namespace dlock::cli
