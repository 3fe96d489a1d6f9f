// Tables.  One list of columns describes both the text and the JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "util/clock.hpp"

namespace dlock::cli {

/// A time without an end: "never" in a table, null in JSON.
struct Never {};

/// A missing value: "-" in a table, no field in JSON.
struct Absent {};

/// Lines of text: "; " between them in a table, an array in JSON.
using Lines = std::vector<std::string>;

/// No value is "-" in a table and null in JSON. A duration is 2m10s in a table and milliseconds in
/// JSON.
using Cell =
    std::variant<std::monostate, Never, Absent, bool, std::uint64_t, Millis, std::string, Lines>;

/// One column of a table of `Row`s.
template <class Row>
struct Column {
  std::string_view heading;     // over the text
  std::string_view field = {};  // in the JSON; empty: not there
  Cell (*cell)(const Row& row);
  std::string_view name = field;  // how --output calls it; empty: not at all
  unsigned gives = 0;             // of a narrow terminal: the larger is cut first; 0: never
  bool right = false;             // on a terminal: numbers that are compared
};

struct Table {
  struct Head {
    std::string_view heading;
    unsigned gives = 0;
    bool right = false;
  };
  std::vector<Head> heads;
  std::vector<std::vector<Cell>> rows;
};

/// A JSON object.
struct Object {
  struct Field {
    std::string_view name;
    Cell cell;
    std::optional<std::vector<Object>> list = {};  // instead of the cell
    bool is_one = false;                           // the list is of one object, and not printed
  };
  std::vector<Field> fields;
};

template <class Row>
using Columns = std::vector<const Column<Row>*>;

template <class Row>
Table tabulate(const Columns<Row>& columns, std::span<const Row> rows) {
  Table table;
  for (const Column<Row>* column : columns) {
    table.heads.push_back({column->heading, column->gives, column->right});
  }
  for (const Row& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const Column<Row>* column : columns) cells.push_back(column->cell(row));
  }
  return table;
}

template <class Row>
Object object_of(const Columns<Row>& columns, const Row& row) {
  Object object;
  for (const Column<Row>* column : columns) {
    if (!column->field.empty()) object.fields.push_back({column->field, column->cell(row)});
  }
  return object;
}

}  // namespace dlock::cli
