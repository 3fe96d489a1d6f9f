#include "engine/describe.hpp"

#include "util/duration.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

constexpr std::size_t kMost = 80;  // bytes of one text in a message

std::string clipped(const std::string& text) { return util::clipped(text, kMost); }

std::string and_others(const LockInfo& info) {
  const std::size_t count = info.holder_count.value_or(info.holders.size());
  return (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") +
         (info.holders.front().endless ? ", and never expires" : "");
}

}  // namespace

std::string base_name(std::string_view command) {
  const auto slash = command.find_last_not_of('/');
  command = command.substr(0, slash == std::string_view::npos ? command.size() : slash + 1);
  return std::string(command.substr(command.rfind('/') + 1));
}

std::string party_in_words(const Owner& owner, std::size_t most) {
  std::string out = util::clipped(owner.user, most);
  if (!owner.host.empty()) out += (out.empty() ? "" : " on ") + util::clipped(owner.host, most);
  if (owner.pid > 0) out += (out.empty() ? "pid " : ", pid ") + std::to_string(owner.pid);
  return out;
}

std::string holder_in_words(const LockInfo::Holder& holder) {
  const Owner& owner = holder.owner;
  std::string out = party_in_words(owner, kMost);
  std::string what = clipped(base_name(owner.command));
  if (owner.ended) what += what.empty() ? "ended" : ", which has ended";
  if (holder.foreign && owner.label) what += (what.empty() ? "" : ", ") + clipped(*owner.label);
  if (holder.foreign && (out.empty() || what.empty())) {
    const bool unknown = *holder.foreign == "unknown";
    (out.empty() ? out : what) = unknown ? "another program" : clipped(*holder.foreign);
  }
  if (out.empty()) return what.empty() ? "an unknown holder" : what;
  return what.empty() ? out : out + " (" + what + ')';
}

std::string holder_in_brief(const LockInfo::Holder& holder) {
  const Owner& owner = holder.owner;
  std::string out = clipped(util::short_host(owner.host));
  if (owner.pid > 0) out += (out.empty() ? "pid " : " pid ") + std::to_string(owner.pid);
  return out.empty() ? holder_in_words(holder) : out;
}

std::string keys_in_words(std::span<const std::string> keys) {
  constexpr std::size_t kMost = 3;
  std::string out;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool is_last = i + 1 == keys.size();
    if (i > 0) out += is_last || (i + 1 == kMost && keys.size() > kMost) ? " and " : ", ";
    if (i + 1 == kMost && !is_last) return out + std::to_string(keys.size() - i) + " more";
    out += util::in_quotes(keys[i]);
  }
  return out;
}

std::string holders_in_words(const LockInfo& info) {
  return info.holders.empty() ? "an unknown holder"
                              : holder_in_words(info.holders.front()) + and_others(info);
}

std::string holders_in_brief(const LockInfo& info) {
  return info.holders.empty() ? "an unknown holder"
                              : holder_in_brief(info.holders.front()) + and_others(info);
}

std::string held_in_words(const std::string& holder, std::optional<Millis> held) {
  return "held by " + holder + (held ? ", for " + util::format_duration(*held) : "");
}

std::string mark_in_words(const Mark& mark) {
  return (mark.name.period.empty() ? "" : "for " + mark.name.period + ", ") +
         util::format_duration(mark.age) + " ago, by " + holder_in_words({.owner = mark.owner});
}

std::string done_in_words(const Mark& mark) {
  return util::in_quotes(mark.name.key) + " was done " + mark_in_words(mark);
}

std::optional<unsigned> count_waiters(const LockInfo& info) {
  if (info.waiter_count) return info.waiter_count;
  if (!info.waiters) return std::nullopt;
  return static_cast<unsigned>(info.waiters->size());
}

}  // namespace dlock
