#include <string>

#include "cli/flags.hpp"
#include "cli/generate.hpp"

namespace dlock::cli {
namespace {

// %FLAGS%, %COMMANDS% and %VALUES% are filled in from the tables.
constexpr std::string_view kScript =
    R"(# bash completion for dlock.  Written by "dlock generate bash"; do not edit.

_dlock()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i flags= joined=
    COMPREPLY=()

    # Behind "--" stands the user's own command line.
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        if declare -F _command_offset > /dev/null; then
            _command_offset $((i + 1))
        elif ((i + 1 == COMP_CWORD)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
            _dlock_files "$cur"
        fi
        return
    done

    # "--flag=value" comes as three words.
    if [[ $cur == = ]]; then
        cur= joined=1
    elif [[ $prev == = ]] && ((COMP_CWORD > 2)); then
        prev=${COMP_WORDS[COMP_CWORD - 2]} joined=1
    fi

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W '%COMMANDS% --help --version' -- "$cur")
        return
    fi

    case $prev in
%VALUES%    esac

    case ${COMP_WORDS[1]} in
%FLAGS%    esac
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
}

_dlock_files()
{
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The name of a profile can be any text: it is offered as it must be typed, and never expanded, as
# compgen -W would.  Where a quotation mark is open, only names that need none are offered.
_dlock_backends()
{
    local name quoted
    while IFS=$'\t' read -r name _; do
        printf -v quoted %q "$name"
        if [[ $quoted == "$2"* || ($quoted == "$name" && $name == "${2#[\"\']}"*) ]]; then
            COMPREPLY+=("$quoted")
        fi
    done < <("$1" complete backends 2> /dev/null)
}

complete -F _dlock dlock
)";

std::string replaced(std::string text, std::string_view mark, const std::string& with) {
  return text.replace(text.find(mark), mark.size(), with);
}

std::string pattern(const Flag& flag) {
  return (flag.letter == 0 ? "" : std::string("-") + flag.letter + " | ") + "--" +
         std::string(flag.name);
}

// If a value can only follow "=", the next word is not a value.
std::string value_case(const Flag& flag, const std::string& command) {
  std::string out = "    " + pattern(flag) + ")\n";
  if (flag.takes_value()) {
    out += "        " + command + "\n        return\n";
  } else {
    out += "        if [[ -n $joined ]]; then\n            " + command +
           "\n            return\n        fi\n";
  }
  return out + "        ;;\n";
}

std::string value_cases() {
  std::string out;
  std::string free;  // those whose values nobody can guess
  for (const Flag& flag : flags()) {
    if (flag.value.empty()) continue;
    if (const std::string choices = choice_list(flag, " "); !choices.empty()) {
      out += value_case(flag, "mapfile -t COMPREPLY < <(compgen -W '" + choices + "' -- \"$cur\")");
    } else if (flag.completes == Completes::files) {
      out += value_case(flag, "_dlock_files \"$cur\"");
    } else if (flag.completes == Completes::backends) {
      out += value_case(flag, "_dlock_backends \"$1\" \"$cur\"");
    } else {
      free += (free.empty() ? "" : " | ") + pattern(flag);
    }
  }
  return out + "    " + free + ")\n        return\n        ;;\n";
}

std::string flag_cases() {
  std::string out;
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    std::string all = command.id == kHelp ? "%COMMANDS%" : "";
    for (const Flag& flag : flags()) {
      if ((flag.commands & command.id) == 0) continue;
      all += (all.empty() ? "--" : " --") + std::string(flag.name);
    }
    if (command.wraps) all += " --";
    out += "    " + std::string(command.name) + ")\n        flags='" + all + "'\n        ;;\n";
  }
  return out;
}

std::string visible_commands() {
  std::string out;
  for (const Command& command : commands()) {
    if (!command.hidden) out += (out.empty() ? "" : " ") + std::string(command.name);
  }
  return out;
}

}  // namespace

std::string generate_bash(std::span<const BackendEntry>) {
  std::string out = replaced(std::string(kScript), "%VALUES%", value_cases());
  out = replaced(std::move(out), "%FLAGS%", flag_cases());
  out = replaced(std::move(out), "%COMMANDS%", visible_commands());
  return replaced(std::move(out), "%COMMANDS%", visible_commands());
}

}  // namespace dlock::cli
