#include "cli/cmd_help.hpp"

#include <algorithm>
#include <array>

#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "core/secret.hpp"

namespace dlock::cli {
namespace {

constexpr std::size_t kColumn = 30;  // where the briefs of options stand

std::string option_term(const Flag& flag) {
  std::string out = flag.letter == 0 ? "    " : std::string("-") + flag.letter + ", ";
  out += "--" + std::string(flag.name);
  return out + value_in_help(flag);
}

std::string brief_of(const Flag& flag) {
  std::string out(flag.brief);
  if (const std::string choices = choice_list(flag, ", "); !choices.empty()) out += ": " + choices;
  if (!flag.fallback.empty()) out += " (default: " + std::string(flag.fallback) + ")";
  return out;
}

std::string usage_line(const Command& command) {
  std::string out = "Usage: dlock " + std::string(command.name);
  if (!command.synopsis.empty()) out += ' ' + std::string(command.synopsis);
  return out + '\n';
}

// Calls `print` for the flags that the command takes, under the headings of their groups.
template <class Print>
std::string by_group(const Command& command, Print print) {
  const auto taken = [&](const Flag& flag) { return (flag.commands & command.id) != 0; };
  std::string out;
  for (const Group group : kGroups) {
    const auto in_group = [&](const Flag& flag) { return flag.group == group && taken(flag); };
    if (std::none_of(flags().begin(), flags().end(), in_group)) continue;
    const bool only_common = std::none_of(flags().begin(), flags().end(), [&](const Flag& flag) {
      return flag.group != Group::common && taken(flag);
    });
    out += '\n' + std::string(only_common ? "Options" : heading(group)) + ":\n";
    for (const Flag& flag : flags()) {
      if (in_group(flag)) out += print(flag);
    }
  }
  return out;
}

std::string full_entry(const Flag& flag) {
  std::string out = hanging(option_term(flag), brief_of(flag), 2, kColumn);
  std::string more(flag.text);
  if (flag.repeats() && flag.takes_value()) more += " Can be repeated.";
  if (!flag.rival.empty()) more += " Not together with --" + std::string(flag.rival) + '.';
  if (!flag.section.empty()) {
    more += " The manual page has more, under " + std::string(flag.section) + '.';
  }
  if (flag.variable) more += " Environment: " + variable_of(flag) + '.';
  return out + wrap(more, 8) + '\n';
}

std::string exit_statuses() {
  std::string out = "Exit status:\n";
  for (const exit_status::Row& row : exit_status::kTable) {
    out += hanging(row.status, row.meaning, 2, 17);
  }
  return out;
}

std::string overview() {
  std::string out =
      "Usage: dlock COMMAND [OPTION]...\n"
      "\n" +
      wrap(
          "Runs commands under locks that processes and machines share: at most one holder at a "
          "time, and nothing left running when the lock is lost.",
          0) +
      "\nCommands:\n";
  for (const Command& command : commands()) {
    if (!command.hidden) out += hanging(command.name, command.brief, 2, 14);
  }
  return out +
         "\n"
         "Examples:\n"
         "  dlock run --key nightly-report -- ./report.sh\n"
         "  dlock run --nonblock --key backup -- rsync -a /srv/ backup:/srv/\n"
         "\n"
         "\"dlock help COMMAND\" explains a command, \"man dlock\" everything.\n";
}

}  // namespace

std::string short_help(const Command& command) {
  std::string out = usage_line(command) + '\n';
  out += sentence(command.brief) + '\n';
  out += by_group(command, [](const Flag& flag) {
    return hanging(option_term(flag), brief_of(flag), 2, kColumn);
  });
  return out + "\n\"dlock help " + std::string(command.name) + "\" tells more.\n";
}

std::string full_help(const Command& command) {
  std::string out = usage_line(command) + '\n' + wrap(command.text, 0);
  out += by_group(command, full_entry);
  if (!command.wraps) return out.substr(0, out.size() - 1);
  return out +
         wrap(
             "A DURATION is a number of seconds, with a fraction if need be, or has units: 0.5, "
             "90s, 250ms, 1h30m, 2d. An option beats its variable in the environment, that beats "
             "the config file, and that beats the default. A yes-or-no option can be taken back "
             "with =no, as in --shared=no.",
             0) +
         '\n' + exit_statuses();
}

int cmd_help(const Invocation& invocation, std::span<const BackendEntry>) {
  if (invocation.operands.empty()) return write_stdout(overview());
  const std::string& topic = invocation.operands.front();
  const Command* command = find_command(topic);
  if (command == nullptr) {
    refuse_usage("no help on " + shown_word(topic) + "; commands: " + command_names());
  }
  return write_stdout(full_help(*command));
}

}  // namespace dlock::cli
