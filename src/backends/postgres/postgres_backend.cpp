#include "backends/postgres/postgres_backend.hpp"

#include <utility>

#include "backends/postgres/database.hpp"
#include "backends/sql/sql_backend.hpp"

namespace dlock::postgres {

Result<std::string> place(const Target& target) {
  auto found = make_place(target);
  if (!found) return found.error();
  return std::move(found->name);
}

bool has_one_lock(const Target& target) {
  const auto place = make_place(target);
  return place && !place.value().advisory.empty() && place.value().advisory != "hash";
}

template <Method method>
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  auto place = make_place(target);
  if (!place) return place.error();
  return sql::make_backend(std::make_shared<const PostgresDatabase>(
      std::make_shared<const Place>(std::move(*place)), method));
}
template Result<std::unique_ptr<Backend>> open<Method::table>(const Target&, Deadline, Cancel);
template Result<std::unique_ptr<Backend>> open<Method::row>(const Target&, Deadline, Cancel);

std::string schema_of(std::string_view prefix) { return schema(prefix); }

}  // namespace dlock::postgres
