// The tables, and what must be true of them.
#pragma once

#include <string>
#include <string_view>

#include "backends/mysql/connection.hpp"
#include "core/result.hpp"

namespace dlock::mysql {

/// The three backends share the tables of locks, but not the locks.
enum class Method { table = 1, row = 2, version = 3 };

/// What kind of a row of the table of locks it is.
enum class Kind { holder = 0, waiter = 1, broken = 2 };

struct Tables {
  explicit Tables(const std::string& prefix)
      : keys(prefix + "keys"),
        locks(prefix + "locks"),
        rows(prefix + "rows"),
        records(prefix + "records") {}
  std::string keys;
  std::string locks;
  std::string rows;     // of mysql-row: what other programs can lock, too
  std::string records;  // of `dlock once` and `dlock id`, which alone need it
};

/// The statements that create what is missing, each with a `;` and a newline.
std::string schema(std::string_view prefix);

/// A table that not every command needs: see extra_table.hpp.
struct ExtraTable {
  std::string name;
  std::string create;      // the statement
  unsigned key_columns{};  // of its primary key,
  unsigned key_names{};    // and how many of these are names
};
ExtraTable rows_table(std::string_view prefix);
ExtraTable records_table(std::string_view prefix);

/// That the user may not create tables, and what an administrator has to run.
Error may_not_create(const Place& place);

/// A boolean expression, true if both tables of locks are there and in InnoDB: in another engine
/// there are no transactions, and two would hold one lock.
std::string fit(const Tables& tables);

/// Looks at both, and writes nothing.  The last answer: fit(), and the columns and keys on which
/// all depends are there.
std::string probe(const Tables& tables);

/// Creates the tables of locks that are missing.  Errc::denied carries the statements for somebody
/// who may; Errc::invalid if a table of such a name is somebody else's.
Result<void> create_tables(Connection& connection, const Place& place, Deadline deadline,
                           Cancel cancel);

/// What an error in one of our statements means, where it is the tables' fault.
Error explain(const Reply& reply, const Place& place);

/// Why fit() was false.
Error unfit(const Place& place);

/// No such table.
inline constexpr unsigned kNoTable = 1146;

}  // namespace dlock::mysql
