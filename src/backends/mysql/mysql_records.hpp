// Records in a table of their own, which is made with the first one that is written.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/mysql/extra_table.hpp"
#include "core/records.hpp"

namespace dlock::mysql {

/// As Say, in time.
using SayBy = std::function<Result<Reply>(const std::string& text, Deadline deadline)>;

/// The marks of one method, and the numbers of all.  `place` must outlive it.  `skips_locked`:
/// whether the server is known to have SKIP LOCKED.
std::unique_ptr<Records> make_records(SayBy say, const Place& place, Method method,
                                      std::function<bool()> skips_locked);

}  // namespace dlock::mysql
