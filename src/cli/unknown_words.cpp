#include "cli/unknown_words.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/flags.hpp"
#include "util/log.hpp"
#include "util/near_match.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr std::string_view kPrefix = "DLOCK_";

constexpr std::array<std::string_view, 9> kSetByDlock{
    "DLOCK_KEY",    "DLOCK_KEYS", "DLOCK_TOKEN", "DLOCK_TOKENS",     "DLOCK_FENCE",
    "DLOCK_FENCES", "DLOCK_SLOT", "DLOCK_ONCE",  "DLOCK_SUPERVISORS"};

// DLOCK_SERVICE_HOST, DLOCK_PORT_80_TCP, and the same of a service dlock-x: "Environment variables"
// in https://kubernetes.io/docs/concepts/services-networking/service
bool is_of_kubernetes(std::string_view name, std::string_view value) {
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  const bool is_protocol = has(name, "_TCP") || has(name, "_UDP") || has(name, "_SCTP");
  return has(name, "_SERVICE_HOST") || has(name, "_SERVICE_PORT") ||
         (name.ends_with("_PORT") && has(value, "://")) || (has(name, "_PORT_") && is_protocol);
}

// A word of other tools or of earlier versions, and the word that dlock uses.
struct Instead {
  std::string_view word;
  std::string_view use;
};

// The names of commands in other tools.
constexpr std::array kCommandsElsewhere{
    Instead{"ls", "list"},
    Instead{"ps", "list"},
    Instead{"status", "show"},
    Instead{"info", "show"},
    Instead{"lock", "run"},
    Instead{"exec", "run"},
    Instead{"unlock", "force-release"},
    Instead{"break", "force-release"},
};

// The names of options in other tools, such as flock(1).
constexpr std::array kOptions{
    Instead{"timeout", "wait"}, Instead{"nb", "nonblock"},
    Instead{"try", "nonblock"}, Instead{"no-wait", "nonblock"},
    Instead{"name", "key"},     Instead{"lock", "key"},
    Instead{"force", "yes"},    Instead{"host", "backend"},
    Instead{"url", "backend"},  Instead{"password", "password-file"},
};

// Options that there are not, with a reason.  Each is a config key and a variable, too.
constexpr std::array kNoOptions{
    Instead{"exclusive", "a lock is exclusive without --shared and --slots"},
    Instead{"token", "use --token-file FILE, or the variables DLOCK_KEY and DLOCK_TOKEN"},
    Instead{"shard", "use \"shards\" in a profile of the config file"},
    Instead{"zk-auth-file", "use ?auth_file=FILE in the URL"},
    Instead{"zk-style", "use ?style=STYLE in the URL"},
};

// Config keys that there are not.  Variables are DLOCK_ and the same in capitals.
constexpr std::array kNoSettings{
    Instead{"nonblock", "use the option --nonblock, or 0 for wait"},
    Instead{"shards", "use \"shards\" in a profile of the config file"},
};

constexpr std::array kColumns{
    Instead{"how", "use mode,slots"},
    Instead{"what", "use command"},
    Instead{"nodes", "use nodes_agreeing,nodes_total"},
    Instead{"waited", "use show --json: waiting_ms"},
    Instead{"waiting_since", "use show --json"},
};

std::string_view find_instead(std::span<const Instead> table, std::string_view word) {
  const auto found = std::ranges::find(table, word, &Instead::word);
  return found == table.end() ? std::string_view() : found->use;
}

std::string because(std::string_view advice) { return "; " + std::string(advice); }

// `key` is the name of a config key; `shown` turns a key into the name that the user wrote.
std::string advice(std::string_view key, bool (Flag::*is_read)() const,
                   std::string (*shown)(std::string_view key)) {
  std::string option(key);
  std::ranges::replace(option, '_', '-');
  for (const auto use : {find_instead(kNoSettings, key), find_instead(kNoOptions, option)}) {
    if (!use.empty()) return because(use);
  }
  std::vector<std::string> known;
  for (const Flag& flag : flags()) {
    std::string its = config_key_of(flag);
    if ((flag.*is_read)()) {
      known.push_back(std::move(its));
    } else if (its == key) {
      return "; use the option --" + std::string(flag.name);
    }
  }
  const std::vector<std::string_view> words(known.begin(), known.end());
  const std::string_view near = util::near_match(key, words);
  return near.empty() ? "" : "; did you mean " + util::in_quotes(shown(near)) + '?';
}

std::string variable_called(std::string_view key) {
  return std::string(kPrefix) + util::upper(key);
}

bool is_known(std::string_view name, std::string_view value) {
  return std::ranges::count(kSetByDlock, name) > 0 || is_of_kubernetes(name, value) ||
         std::ranges::any_of(flags(), [name](const Flag& flag) {
           return flag.in_environment() && std::ranges::count(variables_of(flag), name) > 0;
         });
}

}  // namespace

void warn_of_unknown_variables() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const std::string_view value = text.substr(std::min(name.size() + 1, text.size()));
    if (!name.starts_with(kPrefix) || value.empty() || is_known(name, value)) continue;
    const std::string key = util::lower(name.substr(kPrefix.size()));
    util::log(util::Level::error, "the variable " + util::printable(name.substr(0, 60)) +
                                      " is not read" +
                                      advice(key, &Flag::in_environment, variable_called));
  }
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> words) {
  const std::string_view near = util::near_match(word, words);
  return near.empty() ? "" : "; did you mean " + util::in_quotes(near) + '?';
}

std::string advice_on_command(std::string_view word) {
  if (const auto use = find_instead(kCommandsElsewhere, word); !use.empty()) {
    return "; did you mean " + util::in_quotes(use) + '?';
  }
  std::vector<std::string_view> names;
  for (const Command& command : commands()) {
    if (!command.hidden) names.push_back(command.name);
  }
  return did_you_mean(word, names);
}

std::string advice_on_option(std::string_view name, const Command& command) {
  std::vector<std::string_view> own;
  std::string others;
  for (const Flag& flag : flags()) {
    if (flag.is_of(command)) own.push_back(flag.name);
    if (flag.name != name) continue;
    for (const Command& other : commands()) {
      if (!flag.is_of(other) || other.hidden) continue;
      others += (others.empty() ? "; it is an option of " : ", ") + std::string(other.name);
    }
  }
  if ((name == "k" || name == "key") && !command.operands.empty()) {
    return "; KEY stands by itself: dlock " + std::string(command.name) + " KEY";
  }
  if (const auto use = find_instead(kNoOptions, name); !use.empty()) return because(use);
  std::string_view meant = find_instead(kOptions, name);
  if (meant.empty() || std::ranges::count(own, meant) == 0) {
    if (!others.empty()) return others;
    meant = util::near_match(name, own);
  }
  return meant.empty() ? "" : "; did you mean \"--" + std::string(meant) + "\"?";
}

std::string advice_on_key(std::string_view key) {
  return advice(key, &Flag::in_config, [](std::string_view name) { return std::string(name); });
}

std::string advice_on_column(std::string_view name, std::span<const std::string_view> columns) {
  if (const auto use = find_instead(kColumns, name); !use.empty()) return because(use);
  return did_you_mean(name, columns);
}

}  // namespace dlock::cli
