// A table that not everybody needs, and that is made when it is first needed.
#pragma once

#include <functional>
#include <string>

#include "backends/mysql/connection.hpp"
#include "backends/mysql/place.hpp"
#include "backends/mysql/schema.hpp"

namespace dlock::mysql {

/// Says one text to the server.  A Reply that is not ok() means that a table is missing; all other
/// errors are those of the Result.  What is in doubt, or failed in a way that passes, may be said
/// twice.
using Say = std::function<Result<Reply>(const std::string& text)>;

/// Says `text`, in which @dlock_fit = 1 tells that the table is as it must be (nothing may be
/// written otherwise), and makes the table if it is missing.  Returns the last answer to `text`.
/// Errc::invalid if the table is not ours or in another engine; Errc::denied, with the statements
/// for somebody who may, if this user cannot make it.
Result<Answer> say_with_table(const Say& say, const Place& place, const ExtraTable& table,
                              const std::string& text);

/// A boolean expression, true if the table is as it must be; and why it was false.
std::string fit(const ExtraTable& table);
Error unfit(const Place& place, const ExtraTable& table);

/// Whether this user sees the table.  To one without any right to it, a table that is missing looks
/// like one that is there.
Result<bool> sees(const Say& say, const ExtraTable& table);

}  // namespace dlock::mysql
