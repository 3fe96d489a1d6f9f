#include "cli/print_json.hpp"

#include <nlohmann/json.hpp>

namespace dlock::cli {
namespace {

using nlohmann::ordered_json;

struct ToJson {
  ordered_json operator()(std::monostate) const { return nullptr; }
  ordered_json operator()(Never) const { return nullptr; }
  ordered_json operator()(Millis duration) const { return duration.count(); }
  ordered_json operator()(const Cell& cell) const { return std::visit(*this, cell); }
  ordered_json operator()(const Object& object) const {
    auto out = ordered_json::object();
    for (const Object::Field& field : object.fields) {
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

template <class What>
std::string print(const What& what) {
  return ToJson()(what).dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string print_json(const Object& object) { return print(object); }
std::string print_json(const std::vector<Object>& list) { return print(list); }

}  // namespace dlock::cli
