#include "cli/mark_columns.hpp"

#include <algorithm>
#include <array>

#include "cli/lock_columns.hpp"
#include "cli/print_text.hpp"

namespace dlock::cli {
namespace {

Cell text_or_none(const std::string& value) { return value.empty() ? Cell() : Cell(value); }

constexpr std::array kMarkColumns{
    Column<Mark>{.heading = "KEY",
                 .field = "key",
                 .cell = [](const Mark& mark) -> Cell { return mark.name.key; }},
    Column<Mark>{.heading = "PERIOD",
                 .field = "period",
                 .cell = [](const Mark& mark) { return text_or_none(mark.name.period); }},
    Column<Mark>{.heading = "DONE AT",
                 .field = "done_at",
                 .cell = [](const Mark& mark) { return text_or_none(mark.done_at); }},
    Column<Mark>{.heading = "DONE AGO",
                 .field = "done_ms_ago",
                 .cell = [](const Mark& mark) -> Cell { return mark.age; }},
    Column<Mark>{.heading = "FORGOTTEN IN",
                 .field = "expires_in_ms",
                 .cell = [](const Mark& mark) -> Cell { return mark.left; }},
    Column<Mark>{.heading = "ID",
                 .field = "id",
                 .cell = [](const Mark& mark) { return text_or_none(short_id(mark.owner)); }},
    Column<Mark>{.heading = "HOST",
                 .field = "host",
                 .cell = [](const Mark& mark) { return text_or_none(mark.owner.host); },
                 .gives = 1},
    Column<Mark>{.heading = "PID",
                 .field = "pid",
                 .cell = [](const Mark& mark) -> Cell {
                   if (mark.owner.pid <= 0) return {};
                   return static_cast<std::uint64_t>(mark.owner.pid);
                 }},
    Column<Mark>{.heading = "USER",
                 .field = "user",
                 .cell = [](const Mark& mark) { return text_or_none(mark.owner.user); }},
    Column<Mark>{.heading = "COMMAND",
                 .field = "command",
                 .cell = [](const Mark& mark) { return text_or_none(mark.owner.command); },
                 .gives = 3},
    Column<Mark>{
        .heading = "LABEL",
        .field = "label",
        .cell = [](const Mark& mark) { return text_or_none(mark.owner.label.value_or("")); },
        .gives = 3},
    Column<Mark>{.heading = "FENCE",
                 .field = "fence",
                 .cell = [](const Mark& mark) -> Cell {
                   if (!mark.fence) return {};
                   return *mark.fence;
                 }},
};

constexpr std::array<std::string_view, 3> kAlwaysShown{"done_ms_ago", "host", "command"};
constexpr std::array<std::string_view, 3> kNotForPeople{"done_at", "id", "fence"};

bool is_among(std::span<const std::string_view> names, const Column<Mark>& column) {
  return std::find(names.begin(), names.end(), column.field) != names.end();
}

bool tells_something(const Column<Mark>& column, std::span<const Mark> marks) {
  return std::any_of(marks.begin(), marks.end(),
                     [&](const Mark& mark) { return cell_text(column.cell(mark)) != "-"; });
}

}  // namespace

Table mark_table(std::span<const Mark> marks) {
  Columns<Mark> columns;
  for (const Column<Mark>& column : kMarkColumns) {
    if (is_among(kNotForPeople, column)) continue;
    if (is_among(kAlwaysShown, column) || tells_something(column, marks)) {
      columns.push_back(&column);
    }
  }
  return tabulate<Mark>(columns, marks);
}

std::vector<Object> mark_objects(std::span<const Mark> marks) {
  Columns<Mark> columns;
  for (const Column<Mark>& column : kMarkColumns) columns.push_back(&column);
  std::vector<Object> out;
  for (const Mark& mark : marks) out.push_back(object_of(columns, mark));
  return out;
}

}  // namespace dlock::cli
