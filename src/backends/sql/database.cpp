#include "backends/sql/database.hpp"

#include <algorithm>
#include <stdexcept>

namespace dlock::sql {

std::string Database::fill(std::string_view text, const Values& values) const {
  const auto find = [](const Values& in, std::string_view name) {
    const auto found =
        std::find_if(in.begin(), in.end(), [&](const auto& value) { return value.first == name; });
    return found == in.end() ? nullptr : &found->second;
  };
  std::string out;
  for (;;) {
    const auto from = text.find('{');
    out += text.substr(0, from);
    if (from == std::string_view::npos) return out;
    const auto to = text.find('}', from);
    const std::string_view name = text.substr(from + 1, to - from - 1);
    if (const std::string* value = find(values, name)) {
      out += *value;
    } else if (const std::string* shared = find(common(), name)) {
      out += fill(*shared, values);
    } else {
      throw std::logic_error("a text has a hole without a value: " + std::string(name));
    }
    text.remove_prefix(to + 1);
  }
}

}  // namespace dlock::sql
