#include "backends/redis/describe.hpp"

#include <array>

#include "backends/redis/scripts.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::size_t kMostItems = 3;  // of several commands or replies; of an array twice as many
// What others have under the name of a lock is what releases it: no more of it than of an id.
constexpr std::size_t kMostOfText = 12;
constexpr std::size_t kFirstKey = 3;  // EVALSHA script count key

std::string_view script_name(std::string_view argument) {
  for (const Script* it :
       std::array{&kAsk, &kBreak, &kComplete, &kLeave, &kLook, &kPut, &kRenew, &kVote}) {
    if (argument == it->sha1 || argument == it->text) return it->name;
  }
  return "script";
}

std::string describe(const Command& command) {
  const bool script = command[0].starts_with("EVAL") && command.size() > kFirstKey;
  if (script) {
    return command[0] + ' ' + std::string(script_name(command[1])) + ' ' + command[kFirstKey];
  }
  return command[0] + (command.size() > 1 ? ' ' + command[1] : "");
}

std::string describe(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      return "nil";
    case Reply::Kind::integer:
      return std::to_string(reply.integer);
    case Reply::Kind::error:
      return reply.text;
    case Reply::Kind::text:
      return util::in_quotes(reply.text, kMostOfText);
    case Reply::Kind::array:
      break;
  }
  std::string out;
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (i == 2 * kMostItems) return '[' + out + "...]";
    out += describe(reply.items[i]);
  }
  return '[' + out + ']';
}

template <class Item>
std::string describe_all(std::span<const Item> items) {
  std::string out;
  for (std::size_t i = 0; i < items.size() && i < kMostItems; ++i) {
    out += (i > 0 ? "; " : "") + describe(items[i]);
  }
  if (items.size() <= kMostItems) return out;
  return out + "; and " + std::to_string(items.size() - kMostItems) + " more";
}

}  // namespace

std::string describe(std::span<const Command> commands) { return describe_all(commands); }
std::string describe(std::span<const Reply> replies) { return describe_all(replies); }

}  // namespace dlock::redis
