#include "backends/redis/reply.hpp"

#include <array>
#include <string_view>

#include "util/text.hpp"

namespace dlock::redis {
namespace {

struct Meaning {
  std::string_view mark;
  Errc code;
  std::string_view text;
};

constexpr std::string_view kFull = "max number of clients";
constexpr std::string_view kNoRights = "the user may not do this (see REDIS in the man page)";
constexpr std::string_view kIsReplica = "is a replica; name its master";
constexpr std::string_view kIsLostReplica = "is a replica that has lost its master";

// The first that fits.  Inside a script the server wraps the code in other text, each version
// differently, so a mark may stand anywhere as a word.
constexpr std::array kMeanings{
    Meaning{"WRONGPASS", Errc::denied, "wrong user or password"},
    Meaning{"invalid password", Errc::denied, "wrong password"},
    Meaning{"without any password configured", Errc::denied,
            "a password was given, but the server has none; leave it out"},
    Meaning{"no password is set", Errc::denied,  // Redis 5
            "a password was given, but the server has none; leave it out"},
    Meaning{"NOAUTH", Errc::denied,
            "needs a password; put it in a file and name that with --password-file"},
    Meaning{"unauthenticated",  // Redis 7, when the request is a long one
            Errc::denied, "needs a password; put it in a file and name that with --password-file"},
    Meaning{"NOPERM", Errc::denied, kNoRights},
    Meaning{"ACL failure in script", Errc::denied, kNoRights},          // Redis 8, Valkey 8
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
    Meaning{"unknown command", Errc::unreachable, "lacks a command; dlock needs Redis 5 or later"},
};

bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
    if ((at == 0 || !is_letter(text[at - 1])) && (end >= text.size() || !is_letter(text[end]))) {
      return true;
    }
  }
  return false;
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

Error server_error(const std::string& shown, const std::string& text) {
  for (const Meaning& meaning : kMeanings) {
    if (!has_word(text, meaning.mark)) continue;
    return {meaning.code,
            shown + ": " + std::string(meaning.text) +
                (meaning.text == kNoRights ? ": " + util::in_quotes(text, 160) : ""),
            meaning.mark == kFull};
  }
  return {Errc::unreachable, shown + " refuses: " + util::in_quotes(text, 160)};
}

bool is_replica(const Error& error) {
  return error.message.ends_with(kIsReplica) || error.message.ends_with(kIsLostReplica);
}

bool comes_from_replica(const Reply& reply) {
  return reply.is_error() &&
         (has_word(reply.text, "READONLY") || has_word(reply.text, "MASTERDOWN"));
}

}  // namespace dlock::redis
