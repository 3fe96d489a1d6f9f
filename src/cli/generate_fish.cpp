#include <string>

#include "cli/flags.hpp"
#include "cli/generate.hpp"
#include "cli/print_shell.hpp"

namespace dlock::cli {
namespace {

constexpr std::string_view kFishHead =
    R"(# fish completion for dlock.  Written by "dlock generate fish"; do not edit.

# True while the words of dlock itself are typed, its command being the first of them; with an
# argument, true if that is the command.
function __dlock_at
    set -l words (commandline -opc)
    contains -- -- $words[2..]
    and return 1
    if set -q argv[1]
        test "$words[2]" = "$argv[1]"
    else
        test (count $words) -eq 1
    end
end

# True behind "--", where the user's own command line stands.
function __dlock_in_command
    set -l words (commandline -opc)
    contains -- -- $words[2..]
end

function __dlock_complete_command
    set -l words (commandline -opc)
    set -l mark (contains --index -- -- $words)
    set -l inner (string escape -- $words[(math $mark + 1)..]) (commandline -ct)
    complete -C "$inner"
end

function __dlock_backends
    set -l words (commandline -opc)
    $words[1] complete backends 2>/dev/null
end

complete -c dlock -f
complete -c dlock -n __dlock_in_command -a '(__dlock_complete_command)'
complete -c dlock -n __dlock_at -l help -s h -d 'show an overview'
complete -c dlock -n __dlock_at -l version -d 'show the version'
)";

std::string flag_line(const Command& command, const Flag& flag) {
  std::string out = "complete -c dlock -n '__dlock_at " + std::string(command.name) + "' -l " +
                    std::string(flag.name);
  if (flag.letter != 0) out += std::string(" -s ") + flag.letter;
  if (flag.takes_value()) out += flag.completes == Completes::files ? " -r -F" : " -x";
  const std::string choices = choice_list(flag, " ");
  if (!choices.empty()) out += " -a " + in_fish_quotes(choices);
  if (flag.completes == Completes::backends) out += " -a '(__dlock_backends)'";
  return out + " -d " + in_fish_quotes(flag.brief) + '\n';
}

}  // namespace

std::string generate_fish(std::span<const BackendEntry>) {
  std::string out(kFishHead);
  std::string names;
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    names += (names.empty() ? "" : " ") + std::string(command.name);
    out += "complete -c dlock -n __dlock_at -a " + std::string(command.name) + " -d " +
           in_fish_quotes(command.brief) + '\n';
  }
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += '\n';
    if (command.id == kHelp)
      out += "complete -c dlock -n '__dlock_at help' -a " + in_fish_quotes(names) + '\n';
    for (const Flag& flag : flags()) {
      if ((flag.commands & command.id) != 0) out += flag_line(command, flag);
    }
  }
  return out;
}

}  // namespace dlock::cli
