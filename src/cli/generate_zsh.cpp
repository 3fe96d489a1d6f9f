#include <string>

#include "cli/flags.hpp"
#include "cli/generate.hpp"

namespace dlock::cli {
namespace {

constexpr std::string_view kZshHead = R"zsh(#compdef dlock
# zsh completion for dlock.  Written by "dlock generate zsh"; do not edit.

_dlock_backends() {
  local -a backends
  local row name
  # Backslash and colon have a meaning for _describe.  It quotes what it puts on the command line.
  for row in ${(f)"$(_call_program backends ${(q)_dlock_program} complete backends)"}; do
    name=${${row%%$'\t'*}//\\/\\\\}
    backends+=("${name//:/\\:}:${row#*$'\t'}")
  done
  _describe -t backends backend backends
}

_dlock() {
  local curcontext=$curcontext context state state_descr line
  local -A opt_args
  local _dlock_program=$words[1]

  # Behind "--" stands the user's own command line.
  local -i mark=${words[(i)--]}
  if (( mark > 2 && mark < CURRENT )); then
    shift $mark words
    (( CURRENT -= mark ))
    _normal -p dlock
    return
  fi

  local -a commands=(
)zsh";

constexpr std::string_view kMiddle = R"zsh(  )
  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi

  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
)zsh";

constexpr std::string_view kTail = R"zsh(  esac
}

_dlock "$@"
)zsh";

// For a string in single quotes inside _arguments' own brackets and colons.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

std::string action(const Flag& flag) {
  const std::string choices = choice_list(flag, " ");
  if (!choices.empty()) return '(' + choices + ')';
  if (flag.completes == Completes::files) return "_files";
  if (flag.completes == Completes::backends) return "_dlock_backends";
  return "";
}

// '(-k --key)'{-k+,--key=}'[name of the lock]:KEY:'
std::string spec(const Flag& flag) {
  const std::string name = "--" + std::string(flag.name);
  const std::string letter = flag.letter == 0 ? "" : std::string("-") + flag.letter;
  const std::string long_form = name + (flag.takes_value() ? "=" : flag.alone.empty() ? "" : "=-");
  const std::string rival = flag.rival.empty() ? "" : " --" + std::string(flag.rival);
  std::string out;
  if (flag.repeats()) {
    out = "'*'";
  } else if (!letter.empty() || !rival.empty()) {
    out = "'(" + (letter.empty() ? "" : letter + ' ') + name + rival + ")'";
  }
  out += letter.empty() ? long_form
                        : '{' + letter + (flag.takes_value() ? "+" : "") + ',' + long_form + '}';
  out += "'[" + escaped(flag.brief) + ']';
  if (!flag.value.empty()) {
    out += (flag.takes_value() ? ":" : "::") + escaped(flag.value) + ':' + action(flag);
  }
  return out + '\'';
}

std::string command_case(const Command& command) {
  std::string out = "    " + std::string(command.name) + ")\n      _arguments -s -S -A '-*' : \\\n";
  std::string specs;
  for (const Flag& flag : flags()) {
    if ((flag.commands & command.id) == 0) continue;
    specs += (specs.empty() ? "        " : " \\\n        ") + spec(flag);
  }
  if (command.id == kHelp) {
    specs += " \\\n        '1:command:{ _describe -t commands command commands }'";
  }
  return out + specs + "\n      ;;\n";
}

}  // namespace

std::string generate_zsh(std::span<const BackendEntry>) {
  std::string out(kZshHead);
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += "    '" + std::string(command.name) + ':' + escaped(command.brief) + "'\n";
  }
  out += kMiddle;
  for (const Command& command : commands()) {
    if (!command.hidden) out += command_case(command);
  }
  return out + std::string(kTail);
}

}  // namespace dlock::cli
