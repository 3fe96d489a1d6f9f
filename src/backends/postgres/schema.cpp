// Schema.  The tables are in public and the texts say so: with another search_path, two users would
//          have two tables, and both the lock.
// Keys.    In the collation C, which compares bytes: the order of another one can change with the
//          system's library, and then an index has a key that is not found.
#include "backends/postgres/schema.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/text.hpp"
#include "util/text.hpp"

namespace dlock::postgres {
namespace {

Table make(std::string_view prefix, const char* name, const char* columns, std::string is,
           const std::string& more = "") {
  const std::string full = "public." + std::string(prefix) + name;
  return {full, "CREATE TABLE IF NOT EXISTS " + full + " (\n" + columns + ")" + more,
          std::move(is)};
}

constexpr const char* kKeys = R"(  method text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (method, name))";

constexpr const char* kLocks =
    R"(  owner text COLLATE "C" NOT NULL PRIMARY KEY CHECK (owner ~ '^[0-9a-f]{16,64}$'),
  method text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL CHECK (role IN ('holder', 'waiter', 'broken')),
  mode text COLLATE "C" NOT NULL CHECK (mode IN ('exclusive', 'shared', 'slots')),
  slots integer NOT NULL,
  slot integer NOT NULL,
  fence bigint NOT NULL,
  since timestamptz NOT NULL,
  expires_at timestamptz,
  record text NOT NULL,
  why text)";

constexpr const char* kRows = R"(  name text COLLATE "C" NOT NULL PRIMARY KEY)";

// The methods share the numbers, whose method is 'all', but not the marks.
constexpr const char* kRecords = R"(  method text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  period text COLLATE "C" NOT NULL,
  written_at timestamptz NOT NULL,
  record text NOT NULL,
  PRIMARY KEY (method, name, period))";

constexpr const char* kKeysAre =
    "p r method:text:C:t name:text:C:t version:bigint::t | method,name";
constexpr const char* kLocksAre =
    "p r owner:text:C:t method:text:C:t name:text:C:t role:text:C:t mode:text:C:t "
    "slots:integer::t slot:integer::t fence:bigint::t since:timestamp with time zone::t "
    "expires_at:timestamp with time zone::f record:text:default:t why:text:default:f | owner";
constexpr const char* kRowsAre = "p r name:text:C:t | name";
constexpr const char* kRecordsAre =
    "p r method:text:C:t name:text:C:t period:text:C:t written_at:timestamp with time zone::t "
    "record:text:default:t | method,name,period";

// Permanent, no partition, its columns (name, type, collation, whether NULL is refused), its
// primary key.  One row for each table that is there.
std::string layout(const std::vector<const Table*>& tables) {
  std::string names;
  for (const Table* table : tables) names += (names.empty() ? "" : ", ") + literal(table->name);
  return "SELECT n.name, c.relpersistence::text || ' ' || c.relkind::text || ' ' ||"
         " (SELECT string_agg(a.attname || ':' || format_type(a.atttypid, a.atttypmod) || ':' ||"
         " COALESCE(l.collname, '') || ':' || CASE WHEN a.attnotnull THEN 't' ELSE 'f' END, ' '"
         " ORDER BY a.attnum) FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_collation l"
         " ON l.oid = a.attcollation WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT"
         " a.attisdropped) || ' | ' || COALESCE((SELECT string_agg(a.attname, ',' ORDER BY"
         " array_position(i.indkey::int[], a.attnum::int)) FROM pg_catalog.pg_index i JOIN"
         " pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE"
         " i.indrelid = c.oid AND i.indisprimary), '')"
         " FROM unnest(ARRAY[" +
         names + "]) AS n (name) JOIN pg_catalog.pg_class c ON c.oid = to_regclass(n.name)";
}

Error may_not_create(const Place& place) {
  const std::string prefix =
      place.prefix == sql::kDefaultPrefix ? "" : " --prefix " + util::in_shell(place.prefix);
  const std::string user = place.user.empty() ? "this user" : "user " + util::in_quotes(place.user);
  return {Errc::denied,
          place.shown + ": " + user + " may not create tables in the schema public of database " +
              util::in_quotes(place.database) +
              "; an administrator must run: dlock backends --schema postgres" + prefix +
              " | psql " + util::in_shell(place.database) + " (rights: man dlock-postgres)"};
}

}  // namespace

std::string_view method_name(Method method) { return method == Method::table ? "table" : "row"; }

Tables::Tables(std::string_view prefix)
    : keys(make(prefix, "keys", kKeys, kKeysAre)),
      locks(make(prefix, "locks", kLocks, kLocksAre)),
      rows(make(prefix, "rows", kRows, kRowsAre)),
      records(make(prefix, "records", kRecords, kRecordsAre)) {
  const std::string name = std::string(prefix) + "locks";
  locks.create += ";\nCREATE UNIQUE INDEX IF NOT EXISTS " + name + "_sole ON " + locks.name +
                  " (method, name)\n  WHERE role = 'holder' AND mode = 'exclusive';\n" +
                  "CREATE INDEX IF NOT EXISTS " + name + "_queue ON " + locks.name +
                  " (method, name, role, since)";
}

std::string schema(std::string_view prefix) {
  const Tables tables(prefix);
  std::string out;
  for (const Table* table : tables.all()) out += table->create + ";\n";
  return out;
}

Result<void> check_tables(sql::Session& session, const Place& place,
                          const std::vector<const Table*>& tables, Deadline deadline,
                          Cancel cancel) {
  const sql::Reply reply = session.insist(layout(tables), deadline, cancel);
  if (!reply.ok()) return *reply.error;
  for (const sql::Row& row : reply.answers.front().rows) {
    const auto found = std::find_if(tables.begin(), tables.end(), [&](const Table* table) {
      return table->name == sql::text(row, 0);
    });
    if (found != tables.end() && (*found)->is == sql::text(row, 1)) continue;
    return Error{Errc::invalid, place.shown + ": the table " + util::printable(sql::text(row, 0)) +
                                    " must be as dlock makes it (dlock backends --schema "
                                    "postgres --prefix " +
                                    util::in_shell(place.prefix) +
                                    "); choose another --prefix, or ALTER it"};
  }
  return {};
}

// Another dlock may create them at the same time.
Result<void> create_tables(sql::Session& session, const Place& place, Deadline deadline,
                           Cancel cancel) {
  const Tables tables(place.prefix);
  const auto all = tables.all();
  auto ok = check_tables(session, place, {all.begin(), all.end()}, deadline, cancel);
  if (!ok) return ok;
  const auto made = session.insist(schema(place.prefix), deadline, cancel);
  if (made.ok()) return {};
  return made.error->code == Errc::denied ? may_not_create(place) : *made.error;
}

}  // namespace dlock::postgres
