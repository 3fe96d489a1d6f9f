// For programs: the same tables as JSON.
#pragma once

#include <string>

#include "cli/columns.hpp"

namespace dlock::cli {

/// An array with one object for each row, its fields in the order of the columns.
std::string print_json(const Table& table);

}  // namespace dlock::cli
