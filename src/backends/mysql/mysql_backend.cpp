#include "backends/mysql/mysql_backend.hpp"

#include <utility>

#include "backends/mysql/database.hpp"
#include "backends/sql/sql_backend.hpp"

namespace dlock::mysql {

Result<std::string> place(const Target& target) {
  auto found = make_place(target);
  if (!found) return found.error();
  return std::move(found->name);
}

template <Method method>
Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  auto place = make_place(target);
  if (!place) return place.error();
  return sql::make_backend(std::make_shared<const MysqlDatabase>(
      std::make_shared<const Place>(std::move(*place)), method));
}
template Result<std::unique_ptr<Backend>> open<Method::table>(const Target&, Deadline, Cancel);
template Result<std::unique_ptr<Backend>> open<Method::row>(const Target&, Deadline, Cancel);
template Result<std::unique_ptr<Backend>> open<Method::version>(const Target&, Deadline, Cancel);

std::string schema_of(std::string_view prefix) { return schema(prefix); }

}  // namespace dlock::mysql
