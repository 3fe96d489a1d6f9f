// {K}:owner and the like for a lock K.  If K has a hash tag of its own, {tag}:owner:K, so that all
// are in one slot.  A K with braces that are no tag ("a}b", "{}") has no name that shares its slot:
// on a cluster it is refused by the server (CROSSSLOT), elsewhere it is as good as any.
#include "backends/redis/names.hpp"

#include <algorithm>
#include <array>

#include "core/key.hpp"
#include "core/mark.hpp"

namespace dlock::redis {
namespace {

constexpr std::array<std::string_view, 10> kParts{"fence", "owner", "queue", "waiter", "revoked",
                                                  "void",  "to",    "done",  "number", "workers"};

// As the server finds it: from the first { to the first } behind it, unless nothing is between.
std::string_view hash_tag(std::string_view name) {
  const auto open = name.find('{');
  if (open == std::string_view::npos) return {};
  const auto close = name.find('}', open + 1);
  if (close == std::string_view::npos) return {};
  return name.substr(open + 1, close - open - 1);
}

std::string part_of(std::string_view lock, std::string_view part) {
  const std::string_view tag = hash_tag(lock);
  if (tag.empty()) return '{' + std::string(lock) + "}:" + std::string(part);
  return '{' + std::string(tag) + "}:" + std::string(part) + ':' + std::string(lock);
}

}  // namespace

Names names_of(std::string_view prefix, std::string_view key) {
  const std::string lock = std::string(prefix) + std::string(key);
  return {.lock = lock,
          .counter = part_of(lock, "fence"),
          .owner = part_of(lock, "owner"),
          .queue = part_of(lock, "queue"),
          .waiter = part_of(lock, "waiter") + ':',
          .revoked = part_of(lock, "revoked") + ':',
          .given_up = part_of(lock, "void") + ':',
          .channels = part_of(lock, "to") + ':'};
}

// With braces of its own, a counter could have the name of a lock's fencing token.  The period of a
// mark comes last, after a colon also where it is "": so no two marks have the same name.
std::string record_key(std::string_view prefix, const RecordName& name) {
  if (name.kind == RecordKind::mark) {
    return part_of(std::string(prefix) + name.key, "done") + ':' + name.period;
  }
  if (name.key.empty()) return part_of(prefix, "workers");
  std::string plain;
  for (const char c : name.key) {
    plain += c == '{' ? "%7B" : c == '}' ? "%7D" : c == '%' ? "%25" : std::string(1, c);
  }
  return part_of(std::string(prefix) + plain, "number");
}

std::optional<RecordName> mark_of_key(std::string_view name, std::string_view prefix) {
  constexpr std::string_view kDone = "}:done:";
  if (!name.starts_with('{')) return std::nullopt;
  for (auto at = name.find(kDone); at != std::string_view::npos; at = name.find(kDone, at + 1)) {
    const std::string_view rest = name.substr(at + kDone.size());
    const auto colon = rest.rfind(':');
    const bool has_tag = colon != std::string_view::npos;
    const std::string_view lock = has_tag ? rest.substr(0, colon) : name.substr(1, at - 1);
    const std::string_view period = has_tag ? rest.substr(colon + 1) : rest;
    if (!lock.starts_with(prefix) || !is_period(period)) continue;
    RecordName mark{RecordKind::mark, std::string(lock.substr(prefix.size())), std::string(period)};
    if (check_key(mark.key) && record_key(prefix, mark) == name) return mark;
  }
  return std::nullopt;
}

bool belongs_to_a_lock(std::string_view name, std::string_view prefix) {
  if (!name.starts_with('{')) return false;
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    const std::string mark = "}:" + std::string(part);
    for (auto at = name.find(mark); at != std::string_view::npos; at = name.find(mark, at + 1)) {
      const std::string_view inner = name.substr(1, at - 1);
      std::string_view rest = name.substr(at + mark.size());
      if (!rest.empty() && !rest.starts_with(':')) continue;
      if (inner.starts_with(prefix) && hash_tag(inner).empty()) return true;
      if (rest.empty()) continue;
      rest.remove_prefix(1);
      if (rest.starts_with(prefix) && hash_tag(rest) == inner) return true;
    }
    return false;
  });
}

std::string lock_of_queue(std::string_view name) {
  constexpr std::string_view kMark = "}:queue";
  if (!name.starts_with('{')) return {};
  for (auto at = name.find(kMark); at != std::string_view::npos; at = name.find(kMark, at + 1)) {
    const std::string_view rest = name.substr(at + kMark.size());
    const std::string_view lock = rest.starts_with(':') ? rest.substr(1) : name.substr(1, at - 1);
    if (part_of(lock, "queue") == name) return std::string(lock);
  }
  return {};
}

std::string glob_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace dlock::redis
