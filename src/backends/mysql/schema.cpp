// Keys are VARBINARY: every collation merges some keys that differ, and CHAR ignores trailing
// spaces.  There is no index on a time: a server could choose it to look for a key, and lock what
// it passes by.
#include "backends/mysql/schema.hpp"

#include <algorithm>
#include <utility>

#include "util/text.hpp"

namespace dlock::mysql {
namespace {

std::string create(const std::string& table, const char* columns) {
  return "CREATE TABLE IF NOT EXISTS " + table + " (\n" + columns + "\n) ENGINE=InnoDB";
}

using Needs = std::vector<std::string_view>;

Table make(std::string_view prefix, const char* name, const char* columns, Needs needs) {
  const std::string full = std::string(prefix) + name;
  needs.emplace_back("ENGINE=InnoDB");
  return {full, create(full, columns), std::move(needs)};
}

constexpr const char* kKeys =
    R"(  method TINYINT UNSIGNED NOT NULL COMMENT '1 table, 2 row, 3 version',
  name VARBINARY(255) NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (method, name))";

constexpr const char* kLocks = R"(  owner VARBINARY(64) NOT NULL PRIMARY KEY,
  method TINYINT UNSIGNED NOT NULL COMMENT '1 table, 2 row, 3 version',
  name VARBINARY(255) NOT NULL,
  role ENUM('holder', 'waiter', 'broken') NOT NULL,
  sole TINYINT UNSIGNED NULL COMMENT '1: an exclusive holder',
  mode ENUM('exclusive', 'shared', 'slots') NOT NULL,
  slots SMALLINT UNSIGNED NOT NULL,
  slot SMALLINT UNSIGNED NOT NULL,
  fence BIGINT UNSIGNED NOT NULL,
  since DATETIME(6) NOT NULL,
  expires_at DATETIME(6) NULL,
  record BLOB NOT NULL,
  why BLOB NULL,
  UNIQUE KEY sole (method, name, sole),
  KEY queue (method, name, role, since))";

constexpr const char* kRows = R"(  name VARBINARY(255) NOT NULL PRIMARY KEY)";

// The three methods share the numbers, which have the method 0, but not the marks.
constexpr const char* kRecords = R"(  method TINYINT UNSIGNED NOT NULL,
  name VARBINARY(255) NOT NULL,
  period VARBINARY(16) NOT NULL,
  written_at DATETIME(6) NOT NULL,
  record BLOB NOT NULL,
  PRIMARY KEY (method, name, period))";

Error may_not_create(const Place& place) {
  const std::string prefix =
      place.prefix == sql::kDefaultPrefix ? "" : " --prefix " + util::in_shell(place.prefix);
  return {Errc::denied,
          place.shown + ": user " + util::in_quotes(place.user) +
              " may not create tables in database " + util::in_quotes(place.database) +
              "; an administrator must run: dlock backends --schema mysql" + prefix +
              " | mariadb " + util::in_shell(place.database) + " (rights: man dlock-mysql)"};
}

}  // namespace

// Another type of a name would merge some, without the unique keys a row would be there twice, and
// in another engine there are no transactions.
Tables::Tables(std::string_view prefix)
    : keys(make(prefix, "keys", kKeys,
                {"`method` tinyint", "`name` varbinary(255)", "`version` bigint",
                 "PRIMARY KEY (`method`,`name`)"})),
      locks(
          make(prefix, "locks", kLocks,
               {"`owner` varbinary(64)", "`method` tinyint", "`name` varbinary(255)",
                "`role` enum('holder','waiter','broken')", "`sole` tinyint",
                "`mode` enum('exclusive','shared','slots')", "`slots` smallint", "`slot` smallint",
                "`fence` bigint", "`since` datetime(6)", "`expires_at` datetime(6)", "`record` ",
                "`why` ", "PRIMARY KEY (`owner`)", "UNIQUE KEY `sole` (`method`,`name`,`sole`)"})),
      rows(make(prefix, "rows", kRows, {"`name` varbinary(255)", "PRIMARY KEY (`name`)"})),
      records(make(
          prefix, "records", kRecords,
          {"`method` tinyint", "`name` varbinary(255)", "`period` varbinary(16)",
           "`written_at` datetime(6)", "`record` ", "PRIMARY KEY (`method`,`name`,`period`)"})) {}

std::string schema(std::string_view prefix) {
  const Tables tables(prefix);
  std::string out;
  for (const Table* table : tables.all()) out += table->create + ";\n";
  return out;
}

Result<void> check_table(sql::Session& session, const Place& place, const Table& table,
                         Deadline deadline, Cancel cancel) {
  const sql::Reply reply = session.insist("SHOW CREATE TABLE " + table.name, deadline, cancel);
  if (reply.trouble == sql::Trouble::no_table) return {};
  if (!reply.ok()) return *reply.error;
  const std::string is = sql::text(sql::first_row(reply.answers.front()), 1);
  const bool fits = std::all_of(table.needs.begin(), table.needs.end(), [&](std::string_view need) {
    return is.find(need) != std::string::npos;
  });
  if (fits) return {};
  return Error{Errc::invalid,
               place.shown + ": the table " + table.name +
                   " must be as dlock makes it (dlock backends --schema mysql), in "
                   "the engine InnoDB; ALTER or DROP it, or choose another --prefix"};
}

// Another dlock may create them at the same time.
Result<void> create_tables(sql::Session& session, const Place& place, Deadline deadline,
                           Cancel cancel) {
  const Tables tables(place.prefix);
  for (const Table* table : tables.all()) {
    auto ok = check_table(session, place, *table, deadline, cancel);
    if (!ok) return ok;
  }
  for (const Table* table : tables.all()) {
    const auto made = session.insist(table->create, deadline, cancel);
    if (made.ok()) continue;
    return made.error->code == Errc::denied ? may_not_create(place) : *made.error;
  }
  return {};
}

}  // namespace dlock::mysql
