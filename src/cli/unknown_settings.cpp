#include "cli/unknown_settings.hpp"

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

// What was one, or could be: what to write instead.
struct Instead {
  std::string_view name;  // as of a config key
  std::string_view use;
  bool is_option = true;  // it was one
};
constexpr std::array kInstead{
    Instead{"nonblock", "the option --nonblock, or 0 for wait", false},
    Instead{"token", "--token-file FILE, or the variables DLOCK_KEY and DLOCK_TOKEN"},
    Instead{"shard", "\"shards\" in a profile of the config file"},
    Instead{"shards", "\"shards\" in a profile of the config file"},
    Instead{"zk_auth_file", "?auth_file=FILE in the URL"},
    Instead{"zk_style", "?style=STYLE in the URL"},
};

const Instead* find_instead(std::string_view key) {
  const auto* const found = std::ranges::find(kInstead, key, &Instead::name);
  return found == kInstead.end() ? nullptr : found;
}

// `key` is how a flag is called in a config file, `shown` how a key is shown to the user.
std::string advice(std::string_view key, bool (Flag::*is_read)() const,
                   std::string (*shown)(std::string_view key)) {
  if (const Instead* instead = find_instead(key)) return "; use " + std::string(instead->use);
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

std::string advice_on_key(std::string_view key) {
  return advice(key, &Flag::in_config, [](std::string_view near) { return std::string(near); });
}

std::string advice_on_option(std::string_view name) {
  std::string key(name);
  std::ranges::replace(key, '-', '_');
  const Instead* instead = find_instead(key);
  return instead != nullptr && instead->is_option ? "; use " + std::string(instead->use) : "";
}

}  // namespace dlock::cli
