#include "engine/describe.hpp"

#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

std::string clipped(const std::string& text) { return util::clipped(text, 80); }

}  // namespace

std::string holder_in_words(const LockInfo::Holder& holder) {
  const Owner& owner = holder.owner;
  std::string out = owner.host.empty() ? std::string() : clipped(owner.host);
  if (owner.pid > 0) out += (out.empty() ? "pid " : " pid ") + std::to_string(owner.pid);
  std::string what = owner.command.empty() ? std::string() : clipped(owner.command);
  if (owner.label) what += (what.empty() ? "" : ", ") + clipped(*owner.label);
  if (owner.ended) what += what.empty() ? "ended" : ", which has ended";
  if (holder.foreign && (out.empty() || what.empty())) {
    const bool unknown = *holder.foreign == "unknown";
    (out.empty() ? out : what) = unknown ? "another program" : clipped(*holder.foreign);
  }
  if (out.empty()) return what.empty() ? "an unknown holder" : what;
  return what.empty() ? out : out + " (" + what + ')';
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
  if (info.holders.empty()) return "an unknown holder";
  std::string out = holder_in_words(info.holders.front());
  const std::size_t count = info.holder_count.value_or(info.holders.size());
  if (count > 1) out += " and " + std::to_string(count - 1) + " more";
  if (info.holders.front().endless) out += ", and never expires";
  return out;
}

std::string held_in_words(const std::string& holder, std::optional<Millis> held,
                          std::optional<unsigned> waiting) {
  std::string out = "held by " + holder;
  if (held) out += " for " + util::format_duration(*held);
  if (waiting && *waiting > 0) out += ", " + std::to_string(*waiting) + " waiting";
  return out;
}

std::string done_in_words(const Mark& mark) {
  return util::in_quotes(mark.name.key) + " was done " +
         (mark.name.period.empty() ? "" : "for " + mark.name.period + ", ") +
         util::format_duration(mark.age) + " ago, by " + holder_in_words({.owner = mark.owner});
}

std::optional<unsigned> count_waiters(const LockInfo& info) {
  if (info.waiter_count) return info.waiter_count;
  if (!info.waiters) return std::nullopt;
  return static_cast<unsigned>(info.waiters->size());
}

}  // namespace dlock
