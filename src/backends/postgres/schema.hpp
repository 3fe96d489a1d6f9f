// The tables, and what must be true of them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/place.hpp"
#include "backends/sql/session.hpp"
#include "core/result.hpp"

namespace dlock::postgres {

/// The two backends share the tables, but not the locks.
enum class Method { table, row };
/// As it stands in the tables.
std::string_view method_name(Method method);

struct Table {
  std::string name;    // with the schema
  std::string create;  // the statement
  std::string is;      // what layout() says of it
};

struct Tables {
  explicit Tables(std::string_view prefix);
  Table keys;     // a row for each key, whose version counts the grants
  Table locks;    // a row for each holder and each waiter
  Table rows;     // of postgres-row: what other programs can lock, too
  Table records;  // of `dlock once` and `dlock id`

  std::array<const Table*, 4> all() const { return {&keys, &locks, &rows, &records}; }
};

/// The statements that create what is missing, each with a `;` and a newline.
std::string schema(std::string_view prefix);

/// Creates the tables that are missing.  Errc::denied says what an administrator has to run;
/// Errc::invalid if a table of such a name is not dlock's.
Result<void> create_tables(sql::Session& session, const Place& place, Deadline deadline,
                           Cancel cancel);

/// Whether these tables, those that are there, can be used.  Errc::invalid if not.
Result<void> check_tables(sql::Session& session, const Place& place,
                          const std::vector<const Table*>& tables, Deadline deadline,
                          Cancel cancel);

}  // namespace dlock::postgres
