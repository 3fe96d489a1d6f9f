// The owner of a lock in the JSON records that backends keep.  For sources only: no header of core
// makes its users include nlohmann/json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock {

/// {id, host, pid, user, command, label?, ended?, kind?, lease_ms?}, each text cut to 2,000 bytes:
/// what an owner is called is up to its machine, and a record must stay small.
nlohmann::json owner_to_json(const Owner& owner);
/// Takes what is there and of the right type.
Owner owner_from_json(const nlohmann::json& object);

/// None for text that is not exactly one JSON object.
std::optional<nlohmann::json> parse_object(std::string_view text);
/// On one line; invalid UTF-8 is replaced.
std::string one_line(const nlohmann::json& object);

/// "" and 0 if there is no such member, or if it has another type.
std::string text_of(const nlohmann::json& object, const char* name);
std::int64_t number_of(const nlohmann::json& object, const char* name);
/// None for what cannot be a ttl in milliseconds.
std::optional<Millis> ttl_of(const nlohmann::json& object, const char* name);

/// The first bytes of what may be long.
std::string cut_text(std::string_view text);

}  // namespace dlock
