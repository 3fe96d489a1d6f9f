#include "cli/lock_columns.hpp"

#include <algorithm>
#include <array>

#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/unknown_words.hpp"
#include "cli/values.hpp"
#include "core/secret.hpp"
#include "engine/describe.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr std::size_t kShortId = 12;

// The JSON objects that have the field, one bit each.
enum Part : unsigned { kOfLock = 1, kOfHolder = 2, kOfWaiter = 4 };
constexpr unsigned kOfOwner = kOfHolder | kOfWaiter;

struct LockColumn {
  unsigned parts;
  Column<LockRow> column;
};

Cell number(std::uint64_t value) { return value; }
Cell text(const std::string& value) { return value.empty() ? Cell() : Cell(value); }
Cell text(const std::optional<std::string>& value) { return value ? Cell(*value) : Cell(); }
Cell time(const std::optional<Millis>& value) { return value ? Cell(*value) : Cell(); }

const Owner* owner_of(const LockRow& row) {
  if (row.holder != nullptr) return &row.holder->owner;
  return row.waiter != nullptr ? &row.waiter->owner : nullptr;
}

template <class Show>
Cell of_owner(const LockRow& row, Show show) {
  const Owner* owner = owner_of(row);
  return owner == nullptr ? Cell() : show(*owner);
}

template <class Show>
Cell of_holder(const LockRow& row, Show show) {
  return row.holder == nullptr ? Cell() : show(*row.holder);
}

Cell id(const LockRow& row) {
  return of_holder(row, [](const auto& holder) { return text(short_id(holder.owner)); });
}
Cell kind(const LockRow& row) {
  return of_holder(row, [](const auto& holder) {
    return holder.foreign ? Cell() : text(std::string(kind_name(holder.owner.kind)));
  });
}
Cell key(const LockRow& row) { return row.lock->key; }
Cell mode(const LockRow& row) {
  return std::string(mode_name(row.waiter != nullptr ? row.waiter->mode : row.lock->mode));
}
Cell how(const LockRow& row) {
  if (row.lock->mode == Mode::exclusive) return std::string();
  if (row.lock->mode != Mode::slots) return mode(row);
  const std::string all = std::to_string(row.lock->slots);
  if (row.holder == nullptr || !row.holder->slot) return "slots " + all;
  return "slot " + std::to_string(*row.holder->slot) + '/' + all;
}
Cell slots(const LockRow& row) { return number(row.lock->slots); }
Cell agreeing(const LockRow& row) { return number(row.lock->nodes_agreeing); }
Cell nodes_total(const LockRow& row) { return number(row.lock->nodes_total); }
Cell nodes(const LockRow& row) {
  if (row.lock->nodes_total == 1) return {};
  return std::to_string(row.lock->nodes_agreeing) + " of " + std::to_string(row.lock->nodes_total);
}
Cell remarks(const LockRow& row) { return row.lock->remarks; }
Cell host(const LockRow& row) {
  return of_owner(row, [](const Owner& owner) { return text(owner.host); });
}
Cell short_host(const LockRow& row) {
  return of_owner(row, [](const Owner& owner) { return text(util::short_host(owner.host)); });
}
Cell pid(const LockRow& row) {
  return of_owner(row, [](const Owner& owner) {
    return owner.pid > 0 ? number(static_cast<std::uint64_t>(owner.pid)) : Cell();
  });
}
Cell user(const LockRow& row) {
  return of_owner(row, [](const Owner& owner) { return text(owner.user); });
}
Cell command(const LockRow& row) {
  return of_owner(row, [](const Owner& owner) { return text(owner.command); });
}
Cell ended(const LockRow& row) {
  return row.holder != nullptr && row.holder->owner.ended ? Cell(true) : Cell(Absent());
}
Cell label(const LockRow& row) {
  return of_owner(row, [](const Owner& owner) { return text(owner.label); });
}
Cell since(const LockRow& row) {
  return of_holder(row, [](const auto& holder) { return text(holder.acquired_at); });
}
Cell held(const LockRow& row) {
  return of_holder(row, [](const auto& holder) { return time(holder.held); });
}
Cell expires(const LockRow& row) {
  return of_holder(row, [](const auto& holder) {
    return holder.endless ? Cell(Never()) : time(holder.expires);
  });
}
// Has a value if no process renews the lock, or if its holder has missed a renewal.
Cell ends(const LockRow& row) {
  return of_holder(row, [&](const auto& holder) {
    const bool is_kept = !holder.owner.lease && !holder.owner.ended && !holder.endless;
    if (!is_kept) return expires(row);
    const bool is_late = holder.ttl && holder.expires && *holder.expires < *holder.ttl / 2;
    return is_late ? Cell("late") : Cell();
  });
}
Cell until(const LockRow& row) {
  return of_holder(row, [](const auto& holder) {
    return holder.expires ? text(util::utc_in(*holder.expires)) : Cell();
  });
}
Cell fence(const LockRow& row) {
  return of_holder(row,
                   [](const auto& holder) { return holder.fence ? Cell(*holder.fence) : Cell(); });
}
Cell slot(const LockRow& row) {
  return of_holder(row,
                   [](const auto& holder) { return holder.slot ? number(*holder.slot) : Cell(); });
}
Cell foreign(const LockRow& row) {
  return of_holder(row, [](const auto& holder) { return text(holder.foreign); });
}
Cell what(const LockRow& row) {
  Cell own = command(row);
  const bool ended = row.holder != nullptr && row.holder->owner.ended;
  if (ended) return row.holder->owner.command + " (ended)";
  if (!std::holds_alternative<std::monostate>(own) || row.holder == nullptr) return own;
  if (!row.holder->foreign) return {};
  return row.holder->foreign == "unknown" ? "(another program)" : '(' + *row.holder->foreign + ')';
}
Cell short_what(const LockRow& row) {
  const bool ours = row.holder != nullptr && !row.holder->owner.command.empty();
  if (!ours) return what(row);
  return base_name(row.holder->owner.command) + (row.holder->owner.ended ? " (ended)" : "");
}
Cell waited(const LockRow& row) {
  return row.waiter == nullptr ? Cell() : time(row.waiter->waiting);
}
Cell offered(const LockRow& row) {
  return row.waiter != nullptr && row.waiter->is_offered ? Cell(true) : Cell(Absent());
}
Cell waiting_since(const LockRow& row) {
  const bool known = row.waiter != nullptr && row.waiter->waiting;
  return known ? text(util::utc_in(-*row.waiter->waiting)) : Cell();
}
Cell waiting(const LockRow& row) {
  return row.lock->waiters ? number(row.lock->waiters->size()) : Cell();
}

// The order is that of the JSON.
constexpr std::array kColumns{
    LockColumn{kOfLock, {.heading = "KEY", .field = "key", .cell = key, .gives = 2}},
    LockColumn{kOfLock | kOfWaiter, {.heading = "MODE", .field = "mode", .cell = mode}},
    LockColumn{kOfLock, {.heading = "SLOTS", .field = "slots", .cell = slots}},
    LockColumn{kOfHolder, {.heading = "ID", .field = "id", .cell = id}},
    LockColumn{kOfHolder, {.heading = "KIND", .field = "kind", .cell = kind}},
    LockColumn{kOfOwner, {.heading = "HOST", .field = "host", .cell = host, .gives = 1}},
    LockColumn{kOfOwner, {.heading = "PID", .field = "pid", .cell = pid}},
    LockColumn{kOfOwner, {.heading = "USER", .field = "user", .cell = user}},
    LockColumn{kOfOwner, {.heading = "COMMAND", .field = "command", .cell = command, .gives = 3}},
    LockColumn{kOfHolder, {.heading = "ENDED", .field = "ended", .cell = ended}},
    LockColumn{kOfHolder, {.heading = "LABEL", .field = "label", .cell = label, .gives = 3}},
    LockColumn{kOfHolder,
               {.heading = "SINCE", .field = "acquired_at", .cell = since, .name = "since"}},
    LockColumn{kOfHolder, {.heading = "HELD", .field = "held_ms", .cell = held, .name = "held"}},
    LockColumn{
        kOfHolder,
        {.heading = "EXPIRES", .field = "expires_in_ms", .cell = expires, .name = "expires"}},
    LockColumn{kOfHolder,
               {.heading = "UNTIL", .field = "expires_at", .cell = until, .name = "until"}},
    LockColumn{kOfHolder, {.heading = "FENCE", .field = "fence", .cell = fence}},
    LockColumn{kOfHolder, {.heading = "SLOT", .field = "slot", .cell = slot}},
    LockColumn{kOfHolder, {.heading = "TAKEN BY", .field = "foreign", .cell = foreign}},
    LockColumn{kOfWaiter, {.heading = "OFFERED", .field = "offered", .cell = offered, .name = ""}},
    LockColumn{kOfWaiter, {.heading = "WAITED", .field = "waiting_ms", .cell = waited, .name = ""}},
    LockColumn{
        kOfWaiter,
        {.heading = "WAITING SINCE", .field = "waiting_since", .cell = waiting_since, .name = ""}},
    LockColumn{0,
               {.heading = "WAIT", .field = "", .cell = waiting, .name = "waiting", .right = true}},
    LockColumn{kOfLock, {.heading = "AGREEING", .field = "nodes_agreeing", .cell = agreeing}},
    LockColumn{kOfLock, {.heading = "SERVERS", .field = "nodes_total", .cell = nodes_total}},
    LockColumn{kOfLock, {.heading = "REMARKS", .field = "remarks", .cell = remarks}},
};

// Columns of the table only, not for --output: they combine or shorten other columns.
constexpr Column<LockRow> kHow{.heading = "MODE", .cell = how};
constexpr Column<LockRow> kWhat{.heading = "COMMAND", .cell = what};
constexpr Column<LockRow> kNodes{.heading = "NODES", .cell = nodes};
constexpr Column<LockRow> kEnds{.heading = "EXPIRES", .cell = ends};
constexpr Column<LockRow> kShortHost{.heading = "HOST", .cell = short_host, .gives = 1};
constexpr Column<LockRow> kShortWhat{.heading = "COMMAND", .cell = short_what, .gives = 3};

constexpr const Column<LockRow>* find_column(std::string_view name) {
  for (const LockColumn& it : kColumns) {
    if (it.column.name == name && !name.empty()) return &it.column;
  }
  return nullptr;
}

// Whether any row has a value in this column.  For NODES: whether any servers disagree.
bool tells_something(const Column<LockRow>& column, std::span<const LockRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const LockRow& row) {
    if (&column == &kNodes) return row.lock->nodes_agreeing != row.lock->nodes_total;
    const std::string text = cell_text(column.cell(row));
    return !text.empty() && text != "-" && text != "0";
  });
}

// The columns that are fields of this object, in the order of the table.
Columns<LockRow> columns_of(Part part, const Columns<LockRow>& chosen) {
  Columns<LockRow> out;
  for (const LockColumn& it : kColumns) {
    const bool wanted =
        chosen.empty() || std::find(chosen.begin(), chosen.end(), &it.column) != chosen.end();
    if ((it.parts & part) != 0 && wanted) out.push_back(&it.column);
  }
  return out;
}

// Whether any chosen column belongs to this list alone.
bool wants_list(Part part, const Columns<LockRow>& chosen) {
  return chosen.empty() || std::any_of(kColumns.begin(), kColumns.end(), [&](const auto& it) {
           return (it.parts & (part | kOfLock)) == part &&
                  std::find(chosen.begin(), chosen.end(), &it.column) != chosen.end();
         });
}

}  // namespace

std::vector<std::string_view> column_names() {
  std::vector<std::string_view> out;
  for (const LockColumn& it : kColumns) {
    if (!it.column.name.empty()) out.push_back(it.column.name);
  }
  return out;
}

std::string all_column_names() {
  std::string out;
  for (const std::string_view name : column_names()) {
    out += (out.empty() ? "" : ", ") + std::string(name);
  }
  return out;
}

Columns<LockRow> chosen_columns(const Setting& setting) {
  Columns<LockRow> out;
  for (const std::string_view name : items_of(setting)) {
    const Column<LockRow>* found = find_column(name);
    if (found == nullptr) {
      const std::string near = advice_on_column(name, column_names());
      refuse(setting, "unknown column " + shown_word(std::string(name)) +
                          (near.empty() ? "; columns: " + all_column_names() : near));
    }
    out.push_back(found);
  }
  return out;
}

std::vector<LockRow> holder_rows(const LockInfo& lock) {
  std::vector<LockRow> rows;
  for (const LockInfo::Holder& holder : lock.holders) {
    rows.push_back({.lock = &lock, .holder = &holder});
  }
  std::ranges::stable_sort(rows, {}, [](const LockRow& row) { return row.holder->slot; });
  if (rows.empty()) rows.push_back({.lock = &lock});
  return rows;
}

std::vector<LockRow> waiter_rows(const LockInfo& lock) {
  std::vector<LockRow> rows;
  if (!lock.waiters) return rows;
  for (const LockInfo::Waiter& waiter : *lock.waiters) {
    rows.push_back({.lock = &lock, .waiter = &waiter});
  }
  return rows;
}

Columns<LockRow> list_columns(std::span<const LockRow> rows, std::size_t width) {
  const bool to_terminal = width != kAnyWidth;
  Columns<LockRow> out{find_column("key")};
  const auto add = [&](const Column<LockRow>* column) {
    if (tells_something(*column, rows)) out.push_back(column);
  };
  add(&kHow);
  add(&kNodes);
  out.push_back(to_terminal ? &kShortHost : find_column("host"));
  out.push_back(find_column("pid"));
  out.push_back(find_column("held"));
  add(&kEnds);
  add(find_column("waiting"));
  out.push_back(to_terminal ? &kShortWhat : &kWhat);
  add(find_column("label"));
  const bool both = out.back() == find_column("label");
  if (both && width_of(tabulate<LockRow>(out, rows)) > width) out.erase(out.end() - 2);
  return out;
}

Object lock_object(const LockInfo& lock, const Columns<LockRow>& chosen) {
  const auto list = [&](const std::vector<LockRow>& rows) {
    std::vector<Object> out;
    for (const LockRow& row : rows) {
      if (owner_of(row) != nullptr) out.push_back(party_object(row, chosen));
    }
    return out;
  };
  Object out;
  const auto add_lists = [&] {
    if (wants_list(kOfHolder, chosen)) {
      out.fields.push_back({"holders", {}, list(holder_rows(lock))});
    }
    if (wants_list(kOfWaiter, chosen)) {
      out.fields.push_back({"waiters", {}, {}});
      if (lock.waiters) out.fields.back().list = list(waiter_rows(lock));
    }
  };
  bool added = false;
  for (const auto& field : object_of(columns_of(kOfLock, chosen), LockRow{.lock = &lock}).fields) {
    if (!added && (field.name.starts_with("nodes_") || field.name == "remarks")) {
      added = true;
      add_lists();
    }
    out.fields.push_back(field);
  }
  if (!added) add_lists();
  return out;
}

Object party_object(const LockRow& row, const Columns<LockRow>& chosen) {
  return object_of(columns_of(row.waiter != nullptr ? kOfWaiter : kOfHolder, chosen), row);
}

std::string short_id(const Owner& owner) { return owner.id.substr(0, kShortId); }

}  // namespace dlock::cli
