// Each statement ends with a semicolon, so that it is one even where the shell splits the output
// into words before it evaluates them, as in `eval (dlock ...)` of fish and an unquoted `eval
// $(dlock ...)`.
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

// `eval (dlock ...)` would make a space of a newline between quotes.
std::string in_fish_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("'\\n'") : std::string(1, c);
  }
  return out + '\'';
}

// Those that are set come last: `set -e` of fish fails where there is no such variable.
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
