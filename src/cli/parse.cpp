// CLI11 2.1 parses the options.  Four of its habits are avoided:
// - it looks for "--" after it has looked for values, so the arguments are split before it starts;
// - `--key=` takes the next argument as its value, so it is handed over as two words;
// - `-k=x` is the value "=x" for -k, and `-v=2` is -v and an option without a name: both are
// refused;
// - it builds what it is asked to build, so only the options of the command at hand are added.
#include "cli/parse.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/refusal.hpp"
#include "cli/unknown_words.hpp"
#include "core/secret.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// Only the name of the option is shown: the value in -psecret and --password=secret may be a
// secret.
std::string shown_option(const std::string& word) {
  return shown_word(word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2));
}

const Command& command_named(const std::string& word) {
  if (word == "-h" || word == "--help") return *find_command("help");
  if (word == "--version") return *find_command("version");
  if (const Command* command = find_command(word)) return *command;
  if (word.starts_with('-')) {
    refuse_usage("unknown option " + shown_option(word) +
                 " before the command; options follow it: " +
                 "dlock run [OPTION]... -- COMMAND; see: dlock help");
  }
  const std::string advice = advice_on_command(word);
  refuse_usage("unknown command " + shown_word(word) + advice +
               (advice.empty() ? "; see: dlock help" : " See: dlock help"));
}

std::string see_help(const Command& command) {
  return "; see: dlock help " + std::string(command.name);
}

// Handles the words that CLI11 has left: unknown options, and operands.
void take_operands(std::vector<std::string> words, bool has_mark, Invocation& invocation) {
  const Command& command = *invocation.command;
  for (std::string& word : words) {
    if (word.size() > 1 && word.starts_with('-')) {
      const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
      const std::string advice = advice_on_option(name.substr(0, name.find('=')), command);
      refuse_usage("unknown option " + shown_option(word) +
                   (advice.empty() ? see_help(command) : advice));
    }
    const bool may_be_its_time = invocation.has("nonblock") && util::parse_duration(word);
    if (may_be_its_time) {
      refuse_usage("unexpected " + shown_word(word) +
                   ": --nonblock takes no value; to wait so long: --wait " + word);
    }
    if (command.wraps && has_mark) {
      refuse_usage("unexpected " + shown_word(word) + " before \"--\"; the command goes behind it" +
                   see_help(command));
    }
    if (command.wraps) {
      refuse_usage("put \"--\" before the command: dlock " + std::string(command.name) +
                   " [OPTION]... -- " + (may_hold_password(word) ? "COMMAND" : word));
    }
    if (invocation.operands.size() == command.most_operands()) {
      refuse_usage("unexpected " + shown_word(word) + see_help(command));
    }
    invocation.operands.push_back(std::move(word));
  }
}

// An operand behind "--" may begin with a dash.
void take_all_as_operands(Invocation& invocation) {
  const Command& command = *invocation.command;
  for (std::string& word : invocation.wrapped) {
    if (invocation.operands.size() == command.most_operands()) {
      refuse_usage("unexpected " + shown_word(word) + see_help(command));
    }
    invocation.operands.push_back(std::move(word));
  }
  invocation.wrapped.clear();
}

// Refuses an "=" in the wrong place and names the right form.  The value may be a secret and is not
// shown.
[[noreturn]] void refuse_equals(const std::string& before, const Flag& flag) {
  const std::string letter = std::string("-") + flag.letter;
  const std::string shown = util::in_quotes(before + "=...");
  if (!flag.takes_value()) refuse_usage(shown + ": " + letter + " takes no value");
  refuse_usage(shown + ": a short option takes its value without \"=\"; write " + letter +
               " VALUE or --" + std::string(flag.name) + "=VALUE");
}

// True if the next word is a value of this one.
bool check_letters(const std::string& word, const Command& command) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const Flag* flag = flag_with(word[i], command);
    if (flag == nullptr) return false;
    if (i + 1 < word.size() && word[i + 1] == '=') refuse_equals(word.substr(0, i + 1), *flag);
    if (flag->takes_value()) return i + 1 == word.size();
  }
  return false;
}

bool check_name(const std::string& word, const Command& command) {
  const auto equals = word.find('=');
  const Flag* flag = flag_named(word.substr(2, equals - 2), command);
  if (flag == nullptr) return false;
  if (!flag->takes_value() && equals == word.size() - 1) {
    refuse_usage(word + " has an empty value; write " + word.substr(0, equals));
  }
  return flag->takes_value() && equals == std::string::npos;
}

void refuse_misplaced_equals(std::span<char* const> words, const Command& command) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    const std::string text = *word;
    const bool value_follows = text.starts_with("--")  ? check_name(text, command)
                               : text.starts_with('-') ? check_letters(text, command)
                                                       : false;
    if (value_follows && word + 1 != words.end()) ++word;
  }
}

}  // namespace

bool Invocation::has(std::string_view name) const {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const Given& given) { return given.flag->name == name; });
}

const Flag* flag_with(char letter, const Command& command) {
  const auto all = flags();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Flag& flag) {
    return flag.letter == letter && letter != 0 && flag.is_of(command);
  });
  return found == all.end() ? nullptr : &*found;
}

const Flag* flag_named(std::string_view name, const Command& command) {
  const auto all = flags();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Flag& flag) {
    return flag.name == name && flag.is_of(command);
  });
  return found == all.end() ? nullptr : &*found;
}

Invocation parse(std::span<char* const> arguments) {
  Invocation invocation;
  invocation.command = &command_named(arguments.front());
  const Command& command = *invocation.command;

  const auto rest = arguments.subspan(1);
  const auto mark = std::find_if(rest.begin(), rest.end(),
                                 [](const char* word) { return std::string_view(word) == "--"; });
  const bool has_mark = mark != rest.end();
  if (has_mark) invocation.wrapped.assign(mark + 1, rest.end());

  refuse_misplaced_equals(rest.first(static_cast<std::size_t>(mark - rest.begin())), command);

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const Flag*, CLI::Option*>> options;
  for (const Flag& flag : flags()) {
    if (!flag.is_of(command)) continue;
    std::string names = "--" + std::string(flag.name);
    if (flag.letter != 0) names += std::string(",-") + flag.letter;
    CLI::Option* option = flag.takes_value() ? app.add_option(names) : app.add_flag(names);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options.emplace_back(&flag, option);
  }

  std::vector<std::string> words;  // CLI11 wants them back to front
  for (auto word = mark; word != rest.begin();) {
    const std::string_view text = *--word;
    if (text.starts_with("--") && text.find('=') == text.size() - 1) {
      words.emplace_back("");
      words.emplace_back(text.substr(0, text.size() - 1));
    } else {
      words.emplace_back(text);
    }
  }
  app.parse(words);

  for (const auto& [flag, option] : options) {
    if (option->count() == 0) continue;
    invocation.flags.push_back({flag, option->results()});
    if (flag->alone.empty()) continue;
    auto& values = invocation.flags.back().values;
    std::replace(values.begin(), values.end(), std::string("true"), std::string(flag->alone));
  }
  if (invocation.has("help")) return invocation;
  take_operands(app.remaining(), has_mark, invocation);
  if (!command.alone.empty() && invocation.has(command.alone)) {
    if (!has_mark) return invocation;
    refuse_usage("--" + std::string(command.alone) + " runs nothing: leave \"-- COMMAND\" out" +
                 see_help(command));
  }
  if (!command.wraps && has_mark) take_all_as_operands(invocation);
  if (invocation.operands.size() < command.fewest_operands) {
    refuse_usage("dlock " + std::string(command.name) + " needs " + std::string(command.operands));
  }
  if (command.wraps && !has_mark) {
    refuse_usage("COMMAND is missing: dlock " + std::string(command.name) +
                 " [OPTION]... -- COMMAND" + see_help(command));
  }
  if (command.wraps && invocation.wrapped.empty()) {
    refuse_usage("COMMAND is missing behind \"--\"" + see_help(command));
  }
  return invocation;
}

}  // namespace dlock::cli
