// Words of the user's that nobody knows: what was probably meant.  Each piece of advice goes behind
// a message that names the word, and begins with "; ".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"

namespace dlock::cli {

/// `; did you mean "list"?`, or "" if none of `words` is near (util/near_match.hpp).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> words);

/// Of a command: also what other tools call it.
std::string advice_on_command(std::string_view word);

/// Of an option, without its dashes, of this command: what others call it, what was one, or which
/// commands have it.
std::string advice_on_option(std::string_view name, const Command& command);

/// Of a key of the config file.
std::string advice_on_key(std::string_view key);

/// Of a column of --output: what says the same today, or a near one.
std::string advice_on_column(std::string_view name, std::span<const std::string_view> columns);

/// One line for each variable that begins with DLOCK_ and is not read: somebody may believe to have
/// set something by it.  Also with --quiet.  Variables that dlock sets itself, and those that
/// Kubernetes sets for a service called dlock, are no reason.
void warn_of_unknown_variables();

}  // namespace dlock::cli
