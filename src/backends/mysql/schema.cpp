// Keys are VARBINARY: every collation merges some keys that differ, and CHAR ignores trailing
// spaces.
#include "backends/mysql/schema.hpp"

#include <algorithm>
#include <array>

#include "backends/mysql/sql.hpp"
#include "util/text.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kNoColumn = 1054;
constexpr unsigned kNoDefault = 1364;
constexpr unsigned kTooLong = 1406;
constexpr unsigned kNoEngine = 1286;
constexpr std::array kMayNot{1044U, 1142U, 1143U, 1227U};

std::string create(const std::string& table, const char* columns) {
  return "CREATE TABLE IF NOT EXISTS " + table + " (\n" + columns + "\n) ENGINE=InnoDB";
}

// No second index: a server could choose it to look for a key, and lock what it passes by.
constexpr const char* kColumnsOfKeys = R"(  method TINYINT UNSIGNED NOT NULL,
  name VARBINARY(255) NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (method, name))";

constexpr const char* kColumnsOfLocks = R"(  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  method TINYINT UNSIGNED NOT NULL,
  name VARBINARY(255) NOT NULL,
  kind TINYINT UNSIGNED NOT NULL,
  sole TINYINT UNSIGNED NULL,
  slot SMALLINT UNSIGNED NOT NULL,
  owner VARBINARY(64) NOT NULL,
  mode TINYINT UNSIGNED NOT NULL,
  slots SMALLINT UNSIGNED NOT NULL,
  fence BIGINT UNSIGNED NOT NULL,
  since DATETIME(6) NOT NULL,
  expires_at DATETIME(6) NULL,
  record BLOB NOT NULL,
  why BLOB NULL,
  UNIQUE KEY sole (method, name, sole),
  KEY queue (method, name, kind))";

// Nothing is read: only whether the columns are there.
std::string probe_keys(const std::string& table) {
  return "SELECT method, name, version FROM " + table + " LIMIT 0";
}
std::string probe_locks(const std::string& table) {
  return "SELECT id, method, name, kind, sole, slot, owner, mode, slots, fence, since, "
         "expires_at, record, why FROM " +
         table + " LIMIT 0";
}

// A column that is too short would cut keys, another type would merge some; and without the unique
// keys INSERT IGNORE would make rows twice.
std::string layout_fits(const Tables& tables) {
  const std::string keys = "table_name = " + literal(tables.keys);
  const std::string locks = "table_name = " + literal(tables.locks);
  return "((SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND "
         "data_type = 'varbinary' AND ((column_name = 'name' AND character_maximum_length >= 255 "
         "AND (" +
         keys + " OR " + locks +
         ")) OR (column_name = 'owner' AND character_maximum_length >= 64 AND " + locks +
         "))) = 3 AND (SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = "
         "DATABASE() AND non_unique = 0 AND ((index_name = 'PRIMARY' AND column_name IN ('method', "
         "'name') AND " +
         keys + ") OR (index_name = 'sole' AND column_name IN ('method', 'name', 'sole') AND " +
         locks + "))) = 5)";
}

}  // namespace

std::string probe(const Tables& tables) {
  return probe_keys(tables.keys) + "; " + probe_locks(tables.locks) + "; SELECT " + fit(tables) +
         " AND " + layout_fits(tables);
}

std::string schema(std::string_view prefix) {
  const Tables tables{std::string(prefix)};
  return create(tables.keys, kColumnsOfKeys) + ";\n" + create(tables.locks, kColumnsOfLocks) +
         ";\n" + rows_table(prefix).create + ";\n" + records_table(prefix).create + ";\n";
}

ExtraTable rows_table(std::string_view prefix) {
  const std::string name = Tables{std::string(prefix)}.rows;
  return {name, create(name, R"(  name VARBINARY(255) NOT NULL PRIMARY KEY)"), 1, 1};
}

// The three methods share the table, and the numbers (clauses.hpp), but not the marks.  No index on
// written_at: see mysql_records.cpp.
ExtraTable records_table(std::string_view prefix) {
  const std::string name = Tables{std::string(prefix)}.records;
  return {name, create(name, R"(  method TINYINT UNSIGNED NOT NULL,
  name VARBINARY(255) NOT NULL,
  period VARBINARY(16) NOT NULL,
  written_at DATETIME(6) NOT NULL,
  record BLOB NOT NULL,
  PRIMARY KEY (method, name, period))"),
          3, 2};
}

Error may_not_create(const Place& place) {
  const std::string prefix =
      place.prefix == kDefaultPrefix ? "" : " --prefix " + util::in_shell(place.prefix);
  return {Errc::denied,
          place.shown + ": user " + util::in_quotes(place.user) +
              " may not create tables in database " + util::in_quotes(place.database) +
              "; an administrator must run: dlock backends --schema mysql" + prefix +
              " | mariadb " + util::in_shell(place.database) + " (rights: man dlock-mysql)"};
}

// One look for each: with both names in one, the server opens every table of the database.
std::string fit(const Tables& tables) {
  const std::string look =
      "(SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND "
      "engine = 'InnoDB' AND table_name = ";
  return "(" + look + literal(tables.keys) + ") + " + look + literal(tables.locks) + ") = 2)";
}

Error unfit(const Place& place) {
  const Tables tables(place.prefix);
  return {Errc::invalid, place.shown + ": the tables " + tables.keys + " and " + tables.locks +
                             " must be as dlock makes them (dlock backends --schema mysql), in "
                             "the engine InnoDB; ALTER or DROP them, or choose another --prefix"};
}

Error explain(const Reply& reply, const Place& place) {
  const Tables tables(place.prefix);
  if (reply.code == kNoColumn || reply.code == kNoDefault || reply.code == kTooLong) {
    return {Errc::invalid, place.shown + ": a table " + tables.keys + ", " + tables.locks + ", " +
                               tables.rows + " or " + tables.records +
                               " is there that dlock did not make (" + reply.error->message +
                               "); choose another --prefix"};
  }
  if (reply.code == kNoEngine) {
    return {Errc::invalid, reply.error->message + "; dlock needs InnoDB"};
  }
  return *reply.error;
}

Result<void> create_tables(Connection& connection, const Place& place, Deadline deadline,
                           Cancel cancel) {
  const Tables tables(place.prefix);
  // Before anything is written, whether one of them is somebody else's.
  for (const std::string& probe : {probe_keys(tables.keys), probe_locks(tables.locks)}) {
    const Reply seen = connection.ask(probe, deadline, cancel);
    if (!seen.ok() && seen.code != kNoTable) return explain(seen, place);
  }
  for (const std::string& create :
       {create(tables.keys, kColumnsOfKeys), create(tables.locks, kColumnsOfLocks)}) {
    const Reply made = connection.insist(create, deadline, cancel);  // several create them at once
    if (made.ok()) continue;
    Error error = explain(made, place);
    if (std::find(kMayNot.begin(), kMayNot.end(), made.code) != kMayNot.end()) {
      error = may_not_create(place);
    }
    return error;
  }
  return {};
}

}  // namespace dlock::mysql
