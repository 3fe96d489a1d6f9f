// For programs: the same tables as JSON.
#pragma once

#include <string>

#include "cli/columns.hpp"

namespace dlock::cli {

std::string print_json(const Object& object);
std::string print_json_line(const Object& object);  // on one line
std::string print_json(const std::vector<Object>& list);

}  // namespace dlock::cli
