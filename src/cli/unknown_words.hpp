// Advice on unknown words: the word that was probably meant.  The advice begins with "; " and
// follows a message that names the unknown word.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"

namespace dlock::cli {

/// `; did you mean "list"?`, or "" if none of `words` is near (util/near_match.hpp).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> words);

/// On a command.  Knows the names that other tools use.
std::string advice_on_command(std::string_view word);

/// On an option of `command`, without its dashes.  Knows the names that other tools use, removed
/// options, and the options of other commands.
std::string advice_on_option(std::string_view name, const Command& command);

/// On a key of the config file.
std::string advice_on_key(std::string_view key);

/// On a column of --output.  Knows the replacements of removed columns.
std::string advice_on_column(std::string_view name, std::span<const std::string_view> columns);

/// Prints one line for each variable that begins with DLOCK_ and is not read, even with --quiet:
/// the user may rely on it.  Variables that dlock itself sets, and those that Kubernetes sets for a
/// service called dlock, are not reported.
void warn_of_unknown_variables();

}  // namespace dlock::cli
