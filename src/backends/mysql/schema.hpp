// The two tables, and what must be true of them.
#pragma once

#include <string>
#include <string_view>

#include "backends/mysql/connection.hpp"
#include "core/result.hpp"

namespace dlock::mysql {

/// The three backends share the tables, but not the locks.
enum class Method { table = 1, row = 2, version = 3 };

/// What kind of a row of the table of locks it is.
enum class Kind { holder = 0, waiter = 1, broken = 2 };

struct Tables {
  explicit Tables(const std::string& prefix) : keys(prefix + "keys"), locks(prefix + "locks") {}
  std::string keys;
  std::string locks;
};

/// The statements that create what is missing, each with a `;` and a newline.
std::string schema(std::string_view prefix);

/// A boolean expression, true if both tables are there and in InnoDB: in another engine there are
/// no transactions, and two would hold one lock.
std::string fit(const Tables& tables);

/// Looks at both, and writes nothing.  The last answer: fit(), and the columns and keys on which
/// all depends are there.
std::string probe(const Tables& tables);

/// Creates the tables that are missing.  Errc::denied carries the statements for somebody who may;
/// Errc::invalid if a table of such a name is somebody else's.
Result<void> create_tables(Connection& connection, const Place& place, Deadline deadline,
                           Cancel cancel);

/// What an error in one of our statements means, where it is the tables' fault.
Error explain(const Reply& reply, const Place& place);

/// Why fit() was false.
Error unfit(const Place& place);

/// No such table.
inline constexpr unsigned kNoTable = 1146;

}  // namespace dlock::mysql
