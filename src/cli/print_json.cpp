#include "cli/print_json.hpp"

#include <nlohmann/json.hpp>

#include "util/text.hpp"

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
      out[std::string(field.name)] = field.is_one ? (*this)(field.list->front())
                                     : field.list ? (*this)(*field.list)
                                                  : (*this)(field.cell);
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

constexpr int kOneLine = -1;

template <class What>
std::string print(const What& what, int indent = 2) {
  return util::printable_json(
             ToJson()(what).dump(indent, ' ', false, ordered_json::error_handler_t::replace)) +
         '\n';
}

}  // namespace

std::string print_json(const Object& object) { return print(object); }
std::string print_json_line(const Object& object) { return print(object, kOneLine); }
std::string print_json(const std::vector<Object>& list) { return print(list); }

}  // namespace dlock::cli
