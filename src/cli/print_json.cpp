#include "cli/print_json.hpp"

#include <nlohmann/json.hpp>

namespace dlock::cli {
namespace {

using nlohmann::ordered_json;

struct ToJson {
  ordered_json operator()(std::monostate) const { return nullptr; }
  ordered_json operator()(Never) const { return nullptr; }
  ordered_json operator()(Absent) const { return nullptr; }
  ordered_json operator()(Millis duration) const { return duration.count(); }
  ordered_json operator()(const Cell& cell) const { return std::visit(*this, cell); }
  ordered_json operator()(const Object& object) const {
    auto out = ordered_json::object();
    for (const Object::Field& field : object.fields) {
      if (std::holds_alternative<Absent>(field.cell)) continue;
      out[std::string(field.name)] = field.list ? (*this)(*field.list) : (*this)(field.cell);
    }
    return out;
  }
  ordered_json operator()(const std::vector<Object>& list) const {
    auto out = ordered_json::array();
    for (const Object& object : list) out.push_back((*this)(object));
    return out;
  }
  template <class Plain>
  ordered_json operator()(const Plain& value) const {
    return value;
  }
};

// JSON allows DEL and U+0080 to U+009F as they are, but a terminal may act on them.  In what the
// library prints they can only stand in strings.
std::string without_controls(std::string_view json) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = i + 1 < json.size() ? static_cast<unsigned char>(json[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    if (byte != 0x7F && !is_c1) {
      out += json[i];
      continue;
    }
    constexpr std::string_view kDigits = "0123456789abcdef";
    const unsigned code = is_c1 ? next : byte;
    out += "\\u00";
    out += {kDigits[code >> 4], kDigits[code & 15]};
    if (is_c1) ++i;
  }
  return out;
}

constexpr int kOneLine = -1;

template <class What>
std::string print(const What& what, int indent = 2) {
  return without_controls(
             ToJson()(what).dump(indent, ' ', false, ordered_json::error_handler_t::replace)) +
         '\n';
}

}  // namespace

std::string print_json(const Object& object) { return print(object); }
std::string print_json_line(const Object& object) { return print(object, kOneLine); }
std::string print_json(const std::vector<Object>& list) { return print(list); }

}  // namespace dlock::cli
