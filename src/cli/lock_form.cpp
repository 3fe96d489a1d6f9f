#include "cli/lock_form.hpp"

#include <fstream>
#include <string_view>
#include <vector>

#include "cli/lock_columns.hpp"
#include "cli/print_text.hpp"
#include "engine/describe.hpp"
#include "util/duration.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

using util::format_duration;
using util::printable;

// A form of named fields.
class Form {
 public:
  explicit Form(std::size_t width) : width_(width) {}
  void add(std::string_view name, const std::string& value) {
    text_ += hanging(name, printable(value), 2, kValues, width_);
  }
  void add_if(bool wanted, std::string_view name, const std::string& value) {
    if (wanted) add(name, value);
  }
  void skip_line() { text_ += '\n'; }
  const std::string& text() const { return text_; }

 private:
  std::size_t width_;
  std::string text_;
};

std::string offered_to(const LockInfo& lock) {
  if (!lock.waiters) return "";
  const auto waiter = std::ranges::find(*lock.waiters, true, &LockInfo::Waiter::is_offered);
  if (waiter == lock.waiters->end()) return "";
  return " (offered to " + printable(holder_in_brief({.owner = waiter->owner})) + ')';
}

std::string state_of(const LockInfo& lock) {
  const std::size_t count = lock.holders.size();
  if (count == 0) return "free" + offered_to(lock);
  switch (lock.mode) {
    case Mode::exclusive:
      return "held, exclusive";
    case Mode::shared:
      return "held, shared by " + std::to_string(count);
    case Mode::slots:
      break;
  }
  return "held, " + std::to_string(count) + " of " + std::to_string(lock.slots) + " slots";
}

std::string headline(const LockInfo& lock) {
  const std::size_t waiting = lock.waiters ? lock.waiters->size() : 0;
  return printable(lock.key) + ": " + state_of(lock) +
         (waiting > 0 ? ", " + std::to_string(waiting) + " waiting" : "") + '\n';
}

std::string whole_party(const Owner& owner) {
  const std::string out = party_in_words(owner, std::string::npos);
  return out.empty() ? "unknown" : out;
}

std::string holder_of(const LockInfo::Holder& holder) {
  if (!holder.foreign) {
    return whole_party(holder.owner) + ", dlock " + std::string(kind_name(holder.owner.kind));
  }
  const std::string program =
      *holder.foreign == "unknown" ? "another program" : *holder.foreign + ", not dlock";
  const bool is_known = holder.owner.pid > 0 || !holder.owner.host.empty();
  return is_known ? whole_party(holder.owner) + ", " + program : program;
}

std::string since(const LockInfo::Holder& holder) {
  if (!holder.held) return holder.acquired_at.empty() ? "unknown" : holder.acquired_at;
  return util::local_in(-*holder.held) + " (" + format_duration(*holder.held) + " ago)";
}

std::string expiry(const LockInfo::Holder& holder) {
  if (holder.endless) return "never: it has no TTL";
  if (!holder.expires) return "";
  const std::string in = "in " + format_duration(*holder.expires);
  const std::string at = " (" + util::local_in(*holder.expires) + ")";
  if (holder.owner.ended || holder.foreign) return in + at;
  return in + (holder.owner.lease ? at + " without dlock renew" : " without a renewal");
}

// `title`: "Holder", or "Holder 2".
void add_holder(Form& form, const std::string& title, const LockInfo::Holder& holder) {
  form.add(title, holder_of(holder));
  const Owner& owner = holder.owner;
  form.add_if(!owner.command.empty() || owner.ended, "Command",
              owner.command + (owner.ended ? " (it has ended; --min-hold keeps the lock)" : ""));
  form.add_if(!owner.label.value_or("").empty(), "Label", owner.label.value_or(""));
  form.add("Since", since(holder));
  const std::string expires = expiry(holder);
  form.add_if(!expires.empty(), "Expires", expires);
  form.add_if(holder.slot.has_value(), "Slot", std::to_string(holder.slot.value_or(0)));
  form.add_if(holder.fence.has_value(), "Fence", std::to_string(holder.fence.value_or(0)));
  form.add_if(!owner.id.empty() && !holder.foreign, "Id", short_id(owner));
}

void add_waiters(Form& form, const LockInfo& lock, Traits::Order order) {
  if (!lock.waiters || lock.waiters->empty()) return;
  form.skip_line();
  const bool in_order = order == Traits::Order::fifo;
  if (!in_order) form.add("Waiting", "(in no order)");
  std::size_t number = 0;
  for (const LockInfo::Waiter& waiter : *lock.waiters) {
    std::string line = in_order ? std::to_string(++number) + ". " : "";
    line += whole_party(waiter.owner);
    if (waiter.mode != Mode::exclusive) line += ", " + std::string(mode_name(waiter.mode));
    if (waiter.waiting) line += ", for " + format_duration(*waiter.waiting);
    if (!waiter.owner.command.empty()) line += ": " + base_name(waiter.owner.command);
    form.add(in_order && number == 1 ? "Waiting" : "", line);
  }
}

bool is_here(const Owner& owner) { return owner.host == util::host_name(); }

// A pid can be that of a container that has the host name of this machine, but not its processes.
bool is_its_number_here(const Owner& owner) {
  std::ifstream file("/proc/" + std::to_string(owner.pid) + "/comm");
  std::string comm;
  std::getline(file, comm);
  return owner.kind == Owner::Kind::acquire ? !comm.empty() : comm.starts_with("dlock");
}

std::string with_place(const Owner& owner, const std::string& command) {
  if (owner.host.empty()) return command;
  if (!is_here(owner)) return "on " + printable(owner.host) + ": " + command;
  return is_its_number_here(owner) ? command : "where it runs, perhaps in a container: " + command;
}

}  // namespace

std::string how_to_end(const LockInfo::Holder& holder) {
  const Owner& owner = holder.owner;
  const std::string when =
      holder.expires ? "; the lock expires at " + util::local_in(*holder.expires) : "";
  if (holder.foreign == "flock") {
    return "It is free once no process has its lock file open (fuser tells which have).\n";
  }
  if (owner.ended) return "The command has ended" + when + ".\n";
  if (owner.lease) return "No process keeps it" + when + ".\n";
  if (owner.pid > 0) {
    return "To end this job:  " + with_place(owner, "kill " + std::to_string(owner.pid)) + '\n';
  }
  return "dlock cannot tell which process holds it.\n";
}

std::string lock_form(const LockInfo& lock, std::span<const Mark> marks, const LockService& service,
                      const Backend& backend, std::size_t width) {
  Form form(width);
  form.add("Backend", service.place(backend.location_of(lock.key)));
  form.add_if(
      lock.nodes_total > 1, "Servers",
      std::to_string(lock.nodes_agreeing) + " of " + std::to_string(lock.nodes_total) + " agree");
  for (const std::string& remark : lock.remarks) form.add("", remark);
  std::size_t number = 0;
  for (const LockRow& row : holder_rows(lock)) {
    if (row.holder == nullptr) continue;
    const bool is_alone = lock.holders.size() == 1;
    if (!is_alone) form.skip_line();
    add_holder(form, is_alone ? "Holder" : "Holder " + std::to_string(++number), *row.holder);
  }
  add_waiters(form, lock, service.traits().order);
  for (const Mark& mark : marks) {
    form.add("Done", mark_in_words(mark) + "; forgotten in " + format_duration(mark.left));
  }
  return headline(lock) + form.text();
}

std::string ways_to_end(const LockInfo& lock, const LockService& service) {
  if (lock.holders.empty()) return "";
  const LockInfo::Holder& first = lock.holders.front();
  const bool by_process = service.traits().ends_on == Traits::EndsOn::process_exit;
  const std::string key = util::in_shell(lock.key);
  const auto force = [&](const std::string& options) {
    return "dlock force-release" + service.same_backend() +
           (key.starts_with('-') ? options + " -- " + key : ' ' + key + options) + '\n';
  };
  if (lock.holders.size() > 1 && !first.owner.id.empty()) {
    return "To end one of these jobs: kill its pid on its machine, or from here:\n  " +
           force(" --id ID --reason TEXT");
  }
  std::string end = how_to_end(first);
  if (first.foreign && (by_process || first.owner.id.empty())) return end;
  return end + (end.starts_with("To end") ? "Or from here:     " : "To free it now:   ") +
         force(" --reason TEXT");
}

}  // namespace dlock::cli
