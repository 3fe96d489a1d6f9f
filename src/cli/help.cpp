#include "cli/help.hpp"

#include <algorithm>
#include <array>

#include "cli/cmd.hpp"
#include "cli/flags.hpp"
#include "cli/lock_columns.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "cli/unknown_words.hpp"
#include "core/secret.hpp"

namespace dlock::cli {
namespace {

constexpr std::size_t kColumn = 28;  // where the briefs of options stand

// In the order of help.
constexpr std::array kGroups{Group::lock,     Group::once,   Group::grant,
                             Group::command,  Group::look,   Group::id,
                             Group::backends, Group::result, Group::backend};

std::string_view heading_of(Group group) {
  switch (group) {
    case Group::lock:
      return "Lock";
    case Group::once:
      return "Period";
    case Group::grant:
      return "Script";
    case Group::command:
      return "Command";
    case Group::look:
    case Group::id:
    case Group::backends:
      return "Options";
    case Group::result:
      return "Result and messages";
    case Group::backend:
      return "Backend";
  }
  return "";
}

// " DURATION", "[=SHELL]" or nothing.
std::string value_of(const Flag& flag) {
  if (flag.takes_value()) return ' ' + std::string(flag.value);
  return flag.value.empty() ? "" : "[=" + std::string(flag.value) + ']';
}

std::string option_term(const Flag& flag) {
  std::string out = flag.letter == 0 ? "    " : std::string("-") + flag.letter + ", ";
  out += "--" + std::string(flag.name);
  return out + value_of(flag);
}

std::string brief_of(const Flag& flag) {
  std::string out(flag.brief);
  if (const std::string choices = choice_list(flag, ", "); !choices.empty()) out += ": " + choices;
  if (!flag.fallback.empty()) out += " [" + std::string(flag.fallback) + ']';
  return out;
}

std::string options_of(const Command& command) {
  std::string out;
  for (const Group group : kGroups) {
    std::string lines;
    for (const Flag& flag : flags()) {
      if (flag.group != group || flag.hidden || !flag.is_of(command)) continue;
      lines += hanging(option_term(flag), brief_of(flag), 2, kColumn);
    }
    if (!lines.empty()) out += '\n' + std::string(heading_of(group)) + '\n' + lines;
  }
  const bool has_server = flag_named("server", command) != nullptr;
  return has_server ? out + "  Also --server, --prefix: see man dlock-backends.\n" : out;
}

// What is no command, and where the manual has it.
struct Topic {
  std::string_view name;
  std::string_view place;
};
constexpr std::array kTopics{
    Topic{"exit", "The exit statuses are in: man dlock\n"},
    Topic{"env", "The environment variables are in: man dlock-config\n"},
    Topic{"config", "The config files are in: man dlock-config\n"},
    Topic{"recipes", "Cron, systemd, CI and shell scripts are in: man dlock-recipes\n"},
    Topic{"troubleshooting",
          "Jobs that hang, wait or run twice are in: man dlock-troubleshooting\n"},
};

std::string closing(const Command& command) {
  const bool has_page = command.id != kHelp && command.id != kVersion;
  if (!has_page) return "";
  std::string out;
  if (flag_named("output", command) != nullptr) {
    out += "COLUMNS are: " + all_column_names() + ". ";
  }
  const bool has_duration = std::ranges::any_of(flags(), [&](const Flag& flag) {
    return flag.kind == ValueKind::duration && flag.is_of(command);
  });
  if (has_duration) out += "A DURATION is 90s, 10m, 1h30m, 2d, 250ms, or a number of seconds. ";
  if (flag_named("backend", command) != nullptr) {
    out +=
        "Options can also be set in the environment (DLOCK_BACKEND=prod) and in the config file. ";
  }
  return '\n' + wrap(out + "In detail: man dlock-" + std::string(command.name) + ".", 0);
}

}  // namespace

std::string overview() {
  std::string out =
      wrap(
          "dlock runs a command while it holds a lock, so that only one copy of it runs at a time: "
          "on this machine, or on all machines that use the same lock server.",
          0) +
      "\nUsage: dlock COMMAND [OPTION]...\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    if (!command.heading.empty()) out += '\n' + std::string(command.heading) + '\n';
    out += hanging(command.name, command.brief, 2, 17);
  }
  return out + R"(
Examples
  dlock run -k backup -- rsync -a /srv/ backup:/srv/
  dlock run -b redis://db1/0 -k report -n -- ./report.sh
  dlock list -b redis://db1/0

Without a backend (option -b, variable DLOCK_BACKEND, or a config file), locks
are files of this machine and this user. Other machines and users do not see
them. A config file, /etc/dlock/config.json or ~/.config/dlock/config.json,
gives servers names. With this one, write -b prod:
  {"backends": {"prod": {"url": "redis://db1/0"}}}

dlock help COMMAND      options and examples of a command
man dlock               common options, exit statuses, list of all pages
man dlock-config        config files, variables, passwords
man dlock-recipes       cron, systemd, CI, Kubernetes, shell scripts
man dlock-troubleshooting  a job hangs, waits, or ran twice
)";
}

std::string help_of(const Command& command) {
  std::string out = "Usage: dlock " + std::string(command.name);
  if (!command.synopsis.empty()) out += ' ' + std::string(command.synopsis);
  out += "\n\n" + wrap(command.text, 0);
  if (!command.examples.empty()) out += "\nExamples" + std::string(command.examples);
  return out + options_of(command) + std::string(command.ending) + closing(command);
}

int cmd_help(const Invocation& invocation, std::span<const BackendEntry>) {
  if (invocation.operands.empty()) return write_stdout(overview());
  const std::string& topic = invocation.operands.front();
  for (const auto& [name, place] : kTopics) {
    if (name == topic) return write_stdout(place);
  }
  const Command* command = find_command(topic);
  if (command == nullptr) {
    refuse_usage("no help on " + shown_word(topic) + advice_on_command(topic) +
                 "; \"dlock help\" lists the commands");
  }
  return write_stdout(help_of(*command));
}

}  // namespace dlock::cli
