#include "cli/tokens.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "cli/lock_plan.hpp"
#include "cli/refusal.hpp"
#include "cli/values.hpp"
#include "core/trusted_file.hpp"
#include "engine/describe.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr std::size_t kTokenSize = 32;
constexpr std::size_t kLongestFile = 65'536;

std::vector<std::string> lines_of(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  std::vector<std::string> lines;
  for (std::size_t at = 0; at != std::string::npos;) {
    const auto end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? end : end + 1;
  }
  return lines;
}

std::vector<std::string> read_file(const Setting& setting) {
  const std::string& path = to_text(setting);
  const auto file = read_trusted(path, kLongestFile);
  if (!file) refuse(setting, file.error().message);
  if (!file.value()) refuse(setting, path + ": no such file");
  const auto is_private = check_private(path, *file.value(), "tokens");
  if (!is_private) refuse(setting, is_private.error().message);
  return lines_of(file.value()->text);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The variable that `acquire --export` and `run` set.
std::optional<std::string> token_in_environment(const std::string& key) {
  std::string token = variable("DLOCK_TOKEN");
  if (variable("DLOCK_KEY") == key && !token.empty()) return token;
  const auto keys = lines_of(variable("DLOCK_KEYS"));
  const auto tokens = lines_of(variable("DLOCK_TOKENS"));
  const auto at = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
  if (at >= std::min(keys.size(), tokens.size()) || tokens[at].empty()) return std::nullopt;
  return tokens[at];
}

std::vector<std::string> tokens_in_environment(const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  for (const std::string& key : keys) {
    auto token = token_in_environment(key);
    if (!token) {
      refuse_usage("the lock id of " + util::in_quotes(key) +
                   " is missing: give it with --token-file, or set DLOCK_KEY and DLOCK_TOKEN, as "
                   "dlock acquire --export does");
    }
    out.push_back(std::move(*token));
  }
  return out;
}

void check_count(const Setting& setting, std::size_t tokens, std::size_t keys) {
  if (tokens == keys) return;
  const auto counted = [](std::size_t count, const std::string& what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
  };
  refuse(setting, "give one lock id for each --key, in the same order; here are " +
                      counted(tokens, "lock id") + " for " + counted(keys, "key"));
}

std::vector<std::string> take_tokens(const Settings& settings,
                                     const std::vector<std::string>& keys) {
  const Setting* file = settings.find("token-file");
  if (file == nullptr) return tokens_in_environment(keys);
  std::vector<std::string> tokens = read_file(*file);
  if (tokens.size() == 1 && tokens.front().empty()) {
    refuse(*file, to_text(*file) + " is empty; did dlock acquire fail?");
  }
  check_count(*file, tokens.size(), keys.size());
  const bool lacks_one = std::any_of(tokens.begin(), tokens.end(),
                                     [](const std::string& token) { return token.empty(); });
  if (lacks_one) refuse(*file, "a lock id is empty");
  return tokens;
}

std::string who_has(const LockInfo& lock, const Backend& backend) {
  if (lock.holders.empty()) return "is free in " + backend.location_of(lock.key);
  return "is " + held_in_words(holders_in_words(lock), lock.holders.front().held);
}

// The form of a lock id: 32 hexadecimal digits, and of some backends a colon and a number.
bool is_token(std::string_view text) {
  const std::string_view id = text.substr(0, kTokenSize);
  const std::string_view number = text.substr(id.size());
  const bool is_number = number.size() > 1 && number.front() == ':' &&
                         number.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return id.size() == kTokenSize && (number.empty() || is_number) &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::vector<Claim> take_claims(const Settings& settings, const Command& command) {
  const std::vector<std::string> keys = take_keys(settings, command);
  std::vector<std::string> tokens = take_tokens(settings, keys);
  std::vector<Claim> out;
  for (std::size_t i = 0; i < keys.size(); ++i) out.push_back({keys[i], std::move(tokens[i])});
  return out;
}

Result<Claimed> find_claimed(Backend& backend, const Claim& claim, Deadline deadline) {
  auto lock = backend.inspect(claim.key, deadline);
  if (!lock) return lock.error();
  const std::string key = util::in_quotes(claim.key);
  if (!is_token(claim.token)) {
    return Error{Errc::busy, "the text given for " + key +
                                 " is not a lock id, which begins with 32 hexadecimal digits; " +
                                 key + ' ' + who_has(lock.value(), backend)};
  }
  const auto& holders = lock.value().holders;
  const auto holder = std::find_if(holders.begin(), holders.end(),
                                   [&](const auto& one) { return one.owner.id == claim.token; });
  if (holder == holders.end()) {
    return Error{Errc::lost,
                 "this lock id does not hold it any more (released, expired or broken); "
                 "it " +
                     who_has(lock.value(), backend)};
  }
  if (holder->foreign || holder->owner.kind != Owner::Kind::acquire) {
    return Error{Errc::busy,
                 "the lock id of " + key + " is that of " +
                     (holder->foreign ? std::string("another program, ")
                                      : "a dlock " + std::string(kind_name(holder->owner.kind)) +
                                            ", which renews and releases "
                                            "the lock itself: ") +
                     holder_in_words(*holder)};
  }
  LockInfo::Holder found = *holder;
  return Claimed{std::move(lock.value()), std::move(found)};
}

}  // namespace dlock::cli
