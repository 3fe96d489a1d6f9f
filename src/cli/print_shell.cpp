// Each statement ends with a semicolon.  So the statements stay separate even if the shell splits
// the output into words, as `eval (dlock ...)` of fish and an unquoted `eval $(dlock ...)` do.
#include "cli/print_shell.hpp"

#include "util/text.hpp"

namespace dlock::cli {
namespace {

std::string removal(Shell shell, const std::string& name) {
  return (shell == Shell::fish ? "set -e " : "unset ") + name + ";\n";
}

std::string assignment(Shell shell, const std::string& name, const std::string& value) {
  if (shell == Shell::fish) return "set -gx " + name + ' ' + in_fish_quotes(value) + ";\n";
  return "export " + name + '=' + util::in_shell_quotes(value) + ";\n";
}

}  // namespace

// `eval (dlock ...)` would turn a newline between quotes into a space.
std::string in_fish_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("'\\n'") : std::string(1, c);
  }
  return out + '\'';
}

// Assignments come last, because `set -e` of fish fails if there is no such variable.
std::string print_shell(Shell shell,
                        std::span<const std::pair<std::string, std::string>> variables) {
  std::string removed;
  std::string set;
  for (const auto& [name, value] : variables) {
    (value.empty() ? removed : set) +=
        value.empty() ? removal(shell, name) : assignment(shell, name, value);
  }
  return removed + set;
}

std::string print_failure(int status) { return "sh -c 'exit " + std::to_string(status) + "'\n"; }

}  // namespace dlock::cli
