#include "cli/cmd_backends.hpp"

#include <array>

#include "cli/layers.hpp"
#include "cli/print_json.hpp"
#include "cli/print_text.hpp"
#include "cli/values.hpp"

namespace dlock::cli {
namespace {

std::string text_of(Traits::Reach reach) {
  return reach == Traits::Reach::host ? "host" : "network";
}

std::string text_of(Traits::EndsOn ends_on) {
  switch (ends_on) {
    case Traits::EndsOn::process_exit:
      return "exit";
    case Traits::EndsOn::disconnect:
      return "disconnect";
    case Traits::EndsOn::session:
      return "session";
    case Traits::EndsOn::ttl:
      return "ttl";
  }
  return "";
}

std::string text_of(Traits::Order order) {
  switch (order) {
    case Traits::Order::none:
      return "none";
    case Traits::Order::kernel:
      return "kernel";
    case Traits::Order::fifo:
      return "fifo";
  }
  return "";
}

using Row = BackendEntry;

constexpr std::array<Column<Row>, 9> kColumns{{
    {"NAME", "name", [](const Row& row) { return Cell(std::string(row.name)); }},
    {"BUILT IN", "built_in", [](const Row& row) { return Cell(row.open != nullptr); }},
    {"SHARED", "shared", [](const Row& row) { return Cell(row.traits.shared); }},
    {"SLOTS", "slots", [](const Row& row) { return Cell(row.traits.slots); }},
    {"FENCING", "fencing", [](const Row& row) { return Cell(row.traits.fencing); }},
    {"WAITERS", "knows_waiters", [](const Row& row) { return Cell(row.traits.knows_waiters); }},
    {"ENDS ON", "ends_on", [](const Row& row) { return Cell(text_of(row.traits.ends_on)); }},
    {"ORDER", "order", [](const Row& row) { return Cell(text_of(row.traits.order)); }},
    {"REACH", "reach", [](const Row& row) { return Cell(text_of(row.traits.reach)); }},
}};

}  // namespace

Table backend_table(std::span<const BackendEntry> backends, bool with_build) {
  Columns<Row> columns;
  for (const Column<Row>& column : kColumns) {
    if (with_build || column.field != "built_in") columns.push_back(&column);
  }
  return tabulate(columns, backends);
}

int cmd_backends(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const Settings settings = given_settings(invocation);
  set_log_from(settings);
  if (effective(settings, flag("json")) == nullptr) {
    return write_stdout(print_text(backend_table(backends, true)));
  }
  Columns<Row> columns;
  for (const Column<Row>& column : kColumns) columns.push_back(&column);
  std::vector<Object> rows;
  for (const Row& row : backends) rows.push_back(object_of(columns, row));
  return write_stdout(print_json(rows));
}

}  // namespace dlock::cli
