// Tables: one list of columns says what stands in both the text and the JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlock::cli {

using Cell = std::variant<bool, std::string>;

/// One column of a table of `Row`s.
template <class Row>
struct Column {
  std::string_view heading;  // over the text
  std::string_view field;    // in the JSON
  Cell (*cell)(const Row& row);
};

struct Table {
  std::vector<std::string_view> headings;
  std::vector<std::string_view> fields;
  std::vector<std::vector<Cell>> rows;
};

template <class Row>
Table tabulate(std::span<const Column<Row>> columns, std::span<const Row> rows) {
  Table table;
  for (const Column<Row>& column : columns) {
    table.headings.push_back(column.heading);
    table.fields.push_back(column.field);
  }
  for (const Row& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const Column<Row>& column : columns) cells.push_back(column.cell(row));
  }
  return table;
}

}  // namespace dlock::cli
