#include <algorithm>
#include <array>

#include "cli/cmd.hpp"
#include "cli/columns.hpp"
#include "cli/layers.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/source.hpp"
#include "cli/values.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// The order is that of the enums.
constexpr std::array kReach{"host", "network"};
constexpr std::array kEndsOn{"exit", "session", "ttl"};
constexpr std::array kOrder{"none", "kernel", "fifo"};

template <std::size_t count, class Enum>
Cell one_of(const std::array<const char*, count>& texts, Enum value) {
  return Cell(std::string(texts.at(static_cast<std::size_t>(value))));
}

using Row = BackendEntry;

constexpr std::array<Column<Row>, 10> kBackendColumns{{
    {"NAME", "name", [](const Row& row) { return Cell(std::string(row.name)); }},
    {"BUILT IN", "built_in", [](const Row& row) { return Cell(row.open != nullptr); }},
    {"SHARED", "shared", [](const Row& row) { return Cell(row.traits.shared); }},
    {"SLOTS", "slots", [](const Row& row) { return Cell(row.traits.slots); }},
    {"FENCING", "fencing", [](const Row& row) { return Cell(row.traits.fencing); }},
    {"IDS", "ids", [](const Row& row) { return Cell(row.traits.remembers); }},
    {"WAITERS", "knows_waiters", [](const Row& row) { return Cell(row.traits.knows_waiters); }},
    {"ENDS ON", "ends_on", [](const Row& row) { return one_of(kEndsOn, row.traits.ends_on); }},
    {"ORDER", "order", [](const Row& row) { return one_of(kOrder, row.traits.order); }},
    {"REACH", "reach", [](const Row& row) { return one_of(kReach, row.traits.reach); }},
}};

std::string with_schema(std::span<const BackendEntry> backends) {
  std::string out;
  for (const BackendEntry& entry : backends) {
    if (entry.schema != nullptr) out += (out.empty() ? "" : ", ") + std::string(entry.name);
  }
  return out.empty() ? "none" : out;
}

// The text is for an administrator who has no URL at hand.  So the backend checks the prefix with
// the URL of its example.
std::string schema_of(const Setting& name, const Setting* prefix,
                      std::span<const BackendEntry> backends) {
  const BackendEntry* entry = find_backend(backends, name.text());
  if (entry == nullptr) refuse(name, no_backend(name.text(), backends));
  if (entry->open == nullptr) {
    refuse(name, util::in_quotes(entry->name) + " is not built into this dlock (built in: " +
                     backend_names(backends, true) + ")");
  }
  if (entry->schema == nullptr) {
    refuse(name, util::in_quotes(entry->name) +
                     " has no tables; those that have: " + with_schema(backends));
  }
  if (prefix == nullptr) return entry->schema(entry->usual_prefix);
  Target target;
  target.url = parse_url(entry->forms.front().example).value();
  target.prefix = prefix->text();
  if (auto ok = entry->place(target); !ok) refuse(*prefix, ok.error().message);
  return entry->schema(prefix->text());
}

// Whether each is built in is shown if one is not.
Table backend_table(std::span<const BackendEntry> backends) {
  const bool any_missing =
      std::ranges::any_of(backends, [](const Row& row) { return row.open == nullptr; });
  Columns<Row> columns;
  for (const Column<Row>& column : kBackendColumns) {
    const bool wanted = column.field == "built_in" ? any_missing : column.field != "ids";
    if (wanted) columns.push_back(&column);
  }
  return tabulate(columns, backends);
}

}  // namespace

int cmd_backends(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const Settings settings = given_settings(invocation);
  set_log_from(settings);
  const Setting* schema_name = settings.find("schema");
  if (schema_name != nullptr) {
    const std::string text = schema_of(*schema_name, settings.find("prefix"), backends);
    if (effective(settings, flag("json")) == nullptr) return write_stdout(text);
    return write_stdout(print_json(Object{{{"schema", text}}}));
  }
  if (invocation.has("prefix")) {
    refuse_usage("--prefix is for --schema here: this command looks at no lock");
  }
  if (effective(settings, flag("json")) == nullptr) {
    return write_stdout(print_text(backend_table(backends)));
  }
  Columns<Row> columns;
  for (const Column<Row>& column : kBackendColumns) columns.push_back(&column);
  std::vector<Object> rows;
  for (const Row& row : backends) rows.push_back(object_of(columns, row));
  return write_stdout(print_json(rows));
}

}  // namespace dlock::cli
