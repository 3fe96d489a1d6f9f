#include "backends/redis/reply.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/secret.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

struct Meaning {
  std::string_view mark;
  Errc code;
  std::string_view text;
};

constexpr std::string_view kFull = "max number of clients";
constexpr std::string_view kNeedsOne = "needs a password; put it in a file and name that with ";
constexpr std::string_view kNeedsNone =
    "a password was given, but the server has none; leave it out";
constexpr std::string_view kLacksIt = "lacks a command that dlock uses (see man dlock-redis)";
constexpr std::string_view kNoRights = "the user may not do this (rights: man dlock-redis)";
constexpr std::string_view kWrongPassword = "wrong password";
constexpr std::string_view kIsReplica = "is a replica; name its master";
constexpr std::string_view kIsLostReplica = "is a replica that has lost its master";

// The first that fits: by the code, the first word, or by the words after ERR.  What comes behind
// them may hold those of a key.
constexpr std::array kMeanings{
    Meaning{"WRONGPASS", Errc::denied, kWrongPassword},
    Meaning{"invalid password", Errc::denied, kWrongPassword},
    Meaning{"invalid username or password", Errc::denied, kWrongPassword},  // proxies
    Meaning{"Authentication failed", Errc::denied, kWrongPassword},
    Meaning{"AUTH <password> called without any password", Errc::denied, kNeedsNone},
    Meaning{"Client sent AUTH, but no password is set", Errc::denied, kNeedsNone},  // Redis 5
    Meaning{"NOAUTH", Errc::denied, kNeedsOne},
    Meaning{"Protocol error: unauthenticated", Errc::denied, kNeedsOne},  // a long request, 7
    Meaning{"NOPERM", Errc::denied, kNoRights},
    Meaning{"ACL failure in script", Errc::denied, kNoRights},          // Redis 7, Valkey 8
    Meaning{"The user executing the script", Errc::denied, kNoRights},  // Redis 6
    Meaning{"DENIED", Errc::denied,
            "is in protected mode: it has no password and takes no connection from other hosts"},
    Meaning{"LOADING", Errc::unreachable, "is still loading its data"},
    Meaning{"BUSY", Errc::unreachable, "is busy with a script of somebody else"},
    Meaning{"READONLY", Errc::unreachable, kIsReplica},
    Meaning{"MASTERDOWN", Errc::unreachable, kIsLostReplica},
    Meaning{"OOM", Errc::unreachable, "is out of memory (maxmemory)"},
    Meaning{"MISCONF", Errc::unreachable,
            "takes no writes, because it cannot save its data to disk (see its log)"},
    Meaning{"NOREPLICAS", Errc::unreachable,
            "takes no writes, because it has too few replicas (min-replicas-to-write)"},
    Meaning{"MOVED", Errc::unreachable,
            "is part of a cluster and does not have this key; name the node that has it"},
    Meaning{"CLUSTERDOWN", Errc::unreachable, "is part of a cluster that is down"},
    Meaning{"CROSSSLOT", Errc::unreachable,
            "is part of a cluster, where this key cannot be used: it has braces"},
    Meaning{kFull, Errc::unreachable, "has too many clients (maxclients)"},
    Meaning{"DB index is out of range", Errc::invalid, "has no database of that number"},
    Meaning{"SELECT is not allowed in cluster mode", Errc::invalid,
            "is part of a cluster, which has no database but 0"},
    Meaning{"unknown command", Errc::unsupported, kLacksIt},
    Meaning{"Unknown command", Errc::unsupported, kLacksIt},
    Meaning{"unknown or unsupported command", Errc::unsupported, kLacksIt},     // Pika
    Meaning{"unsupported command", Errc::unsupported, kLacksIt},                // Envoy
    Meaning{"Unknown Redis command called from", Errc::unsupported, kLacksIt},  // in a script
};

// Without ERR.  Redis up to 6 wraps what a command has said to a script: "ERR Error running script
// (call to f_SHA1): @user_script:12: @user_script: 12: -READONLY You can't ...".
std::string_view unwrapped(std::string_view text) {
  constexpr std::string_view kPlace = "@user_script:";
  const auto drop = [&text](std::size_t size) { text.remove_prefix(std::min(size, text.size())); };
  if (text.starts_with("ERR Error running script")) drop(text.find(kPlace));
  while (text.starts_with(kPlace)) drop(text.find_first_not_of(" 0123456789:", kPlace.size()));
  if (text.starts_with('-')) drop(1);
  if (text.starts_with("ERR ")) drop(4);
  return text;
}

bool begins_with(std::string_view text, std::string_view words) {
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  return text.starts_with(words) && (text.size() == words.size() || !is_letter(text[words.size()]));
}

// Null: nobody knows.
const Meaning* meaning_of(std::string_view text) {
  text = unwrapped(text);
  const auto* found =
      std::find_if(kMeanings.begin(), kMeanings.end(),
                   [text](const Meaning& meaning) { return begins_with(text, meaning.mark); });
  return found == kMeanings.end() ? nullptr : found;
}

char letter_of(Reply::Kind kind) {
  switch (kind) {
    case Reply::Kind::nil:
      return '_';
    case Reply::Kind::integer:
      return ':';
    case Reply::Kind::text:
      return '$';
    case Reply::Kind::error:
      return '-';
    case Reply::Kind::array:
      break;
  }
  return '*';
}

}  // namespace

const Reply& Reply::at(std::size_t index) const {
  static const Reply kNothing;
  return index < items.size() ? items[index] : kNothing;
}

bool Reply::is(std::string_view shape) const {
  if (!shape.starts_with(letter_of(kind))) return false;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    if (i > items.size() || letter_of(items[i - 1].kind) != shape[i]) return false;
  }
  return true;
}

std::int64_t Reply::number(std::int64_t otherwise) const {
  if (kind == Kind::integer) return integer;
  if (kind != Kind::text) return otherwise;
  return util::parse_int(text, INT64_MIN, INT64_MAX).value_or(otherwise);
}

bool Reply::says(std::string_view words) const {
  return is_error() && begins_with(unwrapped(text), words);
}

bool Reply::refuses(std::string_view command) const {
  if (!is_error()) return false;
  const Meaning* meaning = meaning_of(text);
  if (meaning != nullptr && meaning->text == kLacksIt) return true;
  return util::lower(text).find(util::lower(command)) != std::string::npos;
}

Error server_error(const Address& server, const std::string& text) {
  const Meaning* meaning = meaning_of(text);
  const auto arguments = text.find(", with args beginning with");  // of a command that is unknown
  const std::string quoted = shown_answer(text.substr(0, arguments), server.password);
  if (meaning == nullptr) return {Errc::unreachable, server.shown + " refuses: " + quoted};
  const bool in_its_words = meaning->text == kNoRights || meaning->text == kLacksIt;
  if (meaning->text == kWrongPassword && !server.user.empty()) {
    return {Errc::denied, server.shown + ": wrong password for user " +
                              util::in_quotes(server.user) + ", or there is no such user"};
  }
  const std::string more = in_its_words                 ? ": " + quoted
                           : meaning->text == kNeedsOne ? server.password_option
                                                        : "";
  return {meaning->code, server.shown + ": " + std::string(meaning->text) + more,
          meaning->mark == kFull};
}

bool is_replica(const Error& error) {
  return error.message.ends_with(kIsReplica) || error.message.ends_with(kIsLostReplica);
}

bool comes_from_replica(const Reply& reply) {
  return reply.says("READONLY") || reply.says("MASTERDOWN");
}

}  // namespace dlock::redis
