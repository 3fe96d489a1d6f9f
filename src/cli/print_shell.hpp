// Statements for a shell to evaluate.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace dlock::cli {

/// The order is that of the choices in the flag table.
enum class Shell { posix, fish };

/// The text as one word of fish.
std::string in_fish_quotes(std::string_view text);

/// Statements that export each variable, or remove it if its value is empty.  At least one must
/// have a value; then the status of the last statement is 0.
std::string print_shell(Shell shell,
                        std::span<const std::pair<std::string, std::string>> variables);

/// A statement with this exit status, in any shell.
std::string print_failure(int status);

}  // namespace dlock::cli
