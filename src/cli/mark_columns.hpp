// The table of everything that can be shown of a done-mark. `list --done` and the JSON use it.
#pragma once

#include <span>

#include "cli/columns.hpp"
#include "core/mark.hpp"

namespace dlock::cli {

/// The table for `list --done`.  A column without a value in any row is omitted.
Table mark_table(std::span<const Mark> marks);

/// An element of "done" in the JSON.
std::vector<Object> mark_objects(std::span<const Mark> marks);

}  // namespace dlock::cli
