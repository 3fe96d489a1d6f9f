#include "backends/mysql/extra_table.hpp"

#include "backends/mysql/sql.hpp"

namespace dlock::mysql {
namespace {

std::string in_schema(const ExtraTable& table) {
  return " WHERE table_schema = DATABASE() AND table_name = " + literal(table.name);
}

}  // namespace

// A table in another engine would lose what is in it when the server is killed, and knows no
// transactions.  A name of another type than VARBINARY would stand for several.
std::string fit(const ExtraTable& table) {
  return "(SELECT COUNT(*) FROM information_schema.tables" + in_schema(table) +
         " AND engine = 'InnoDB') AND (SELECT COUNT(*) = " + std::to_string(table.key_columns) +
         " AND SUM(data_type = 'varbinary') = " + std::to_string(table.key_names) +
         " FROM information_schema.columns" + in_schema(table) + " AND column_key = 'PRI')";
}

Error unfit(const Place& place, const ExtraTable& table) {
  return {Errc::invalid, place.shown + ": the table " + table.name +
                             " must be as dlock makes it (dlock backends --schema mysql), in the "
                             "engine InnoDB; ALTER or DROP it, or choose another --prefix"};
}

Result<bool> sees(const Say& say, const ExtraTable& table) {
  const auto reply = say("SELECT COUNT(*) FROM information_schema.tables" + in_schema(table));
  if (!reply) return reply.error();
  return reply.value().ok() && number_in(reply.value().answers.back()) == 1;
}

// What fit() found may be of a moment before another process has made the table: so it is asked
// again.
Result<Answer> say_with_table(const Say& say, const Place& place, const ExtraTable& table,
                              const std::string& text) {
  for (int tries = 1;; ++tries) {
    const auto reply = say("SET @dlock_fit = " + fit(table) + "; " + text + "; SELECT @dlock_fit");
    if (!reply) {
      const bool may_be_missing = reply.error().code == Errc::denied;
      const auto seen = may_be_missing ? sees(say, table) : true;
      return seen && !seen.value() ? may_not_create(place) : reply.error();
    }
    if (reply.value().ok()) {
      const auto& answers = reply.value().answers;
      if (number_in(answers.back()) == 1) return answers.at(answers.size() - 2);
      if (tries == 3) return unfit(place, table);
      continue;
    }
    if (tries == 3) return *reply.value().error;
    const auto made = say(table.create);
    if (made) continue;
    return made.error().code == Errc::denied ? may_not_create(place) : made.error();
  }
}

}  // namespace dlock::mysql
