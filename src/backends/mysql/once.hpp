// What `dlock once` remembers, in a table of its own.  How it is written: Statements::complete().
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "backends/mysql/extra_table.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

// See Backend.  Only prepare_marks() makes the table.
Result<std::optional<Mark>> find_mark(const Say& say, const Place& place, Method method,
                                      const MarkName& name);
Result<void> prepare_marks(const Say& say, const Place& place, Method method, std::string_view key);
Result<std::vector<Mark>> list_marks(const Say& say, const Place& place, Method method,
                                     std::string_view prefix);
Result<bool> forget_mark(const Say& say, const Place& place, Method method, const MarkName& name);

}  // namespace dlock::mysql
