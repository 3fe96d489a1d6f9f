#include "core/owner_json.hpp"

#include <utility>

namespace dlock {

using nlohmann::json;

std::string cut_text(std::string_view text) {
  constexpr std::size_t kMost = 2'000;
  return std::string(text.substr(0, kMost));
}

std::string text_of(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::int64_t number_of(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

std::optional<Millis> ttl_of(const json& object, const char* name) {
  constexpr Millis kLongest{24 * 3'600'000};  // as --ttl has it
  const Millis ttl{number_of(object, name)};
  return ttl > Millis{0} && ttl <= kLongest ? std::optional(ttl) : std::nullopt;
}

std::optional<json> parse_object(std::string_view text) {
  // The library copies and prints a value by calling itself for each level.  What is deeper than
  // anything that dlock writes is left out.
  constexpr int kDeepest = 8;
  const auto keep = [](int depth, json::parse_event_t, json&) { return depth < kDeepest; };
  json object = json::parse(text, keep, false);
  if (!object.is_object()) return std::nullopt;
  return std::make_optional(std::move(object));
}

std::string one_line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

json owner_to_json(const Owner& owner) {
  json object{{"id", cut_text(owner.id)},
              {"host", cut_text(owner.host)},
              {"pid", owner.pid},
              {"user", cut_text(owner.user)},
              {"command", cut_text(owner.command)}};
  if (owner.label) object["label"] = cut_text(*owner.label);
  if (owner.ended) object["ended"] = true;
  if (owner.kind != Owner::Kind::run) object["kind"] = kind_name(owner.kind);
  if (owner.lease) object["lease_ms"] = owner.lease->count();
  return object;
}

Owner owner_from_json(const json& object) {
  Owner owner;
  owner.id = text_of(object, "id");
  owner.host = text_of(object, "host");
  owner.pid = number_of(object, "pid");
  owner.user = text_of(object, "user");
  owner.command = text_of(object, "command");
  if (object.contains("label")) owner.label = text_of(object, "label");
  const auto ended = object.find("ended");
  owner.ended = ended != object.end() && *ended == true;
  owner.kind = parse_kind(text_of(object, "kind")).value_or(Owner::Kind::run);
  owner.lease = ttl_of(object, "lease_ms");
  return owner;
}

}  // namespace dlock
