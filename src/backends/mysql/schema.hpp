// The tables, and what must be true of them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "backends/mysql/place.hpp"
#include "backends/sql/session.hpp"
#include "core/result.hpp"

namespace dlock::mysql {

/// The three backends share the tables, but not the locks.
enum class Method { table = 1, row = 2, version = 3 };

struct Table {
  std::string name;
  std::string create;                        // the statement
  std::vector<std::string_view> needs = {};  // parts of what SHOW CREATE TABLE says
};

struct Tables {
  explicit Tables(std::string_view prefix);
  Table keys;     // a row for each key, whose version counts the grants
  Table locks;    // a row for each holder and each waiter
  Table rows;     // of mysql-row: what other programs can lock, too
  Table records;  // of `dlock once` and `dlock id`

  std::array<const Table*, 4> all() const { return {&keys, &locks, &rows, &records}; }
};

/// The statements that create what is missing, each with a `;` and a newline.
std::string schema(std::string_view prefix);

/// Creates the tables that are missing.  Errc::denied says what an administrator has to run;
/// Errc::invalid if a table of such a name is not dlock's.
Result<void> create_tables(sql::Session& session, const Place& place, Deadline deadline,
                           Cancel cancel);

/// Whether a table, if it is there, can be used.  Errc::invalid if not.
Result<void> check_table(sql::Session& session, const Place& place, const Table& table,
                         Deadline deadline, Cancel cancel);

}  // namespace dlock::mysql
