#include "cli/print_json.hpp"

#include <nlohmann/json.hpp>

namespace dlock::cli {

std::string print_json(const Table& table) {
  using nlohmann::ordered_json;
  auto out = ordered_json::array();
  for (const auto& row : table.rows) {
    auto object = ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::visit([&](const auto& value) { object[std::string(table.fields[i])] = value; }, row[i]);
    }
    out.push_back(std::move(object));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace dlock::cli
