// The one table of what can be shown of a job that is done: `list --done`, `show`, JSON and the man
// page all come from it.
#pragma once

#include <span>

#include "cli/columns.hpp"
#include "core/mark.hpp"

namespace dlock::cli {

/// In the order of the JSON.
std::span<const Column<Mark>> mark_columns();

/// For people; what tells nothing in any of these rows is left out.
Table mark_table(std::span<const Mark> marks);

/// An element of "done" in the JSON.
std::vector<Object> mark_objects(std::span<const Mark> marks);

}  // namespace dlock::cli
