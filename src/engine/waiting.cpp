#include "engine/waiting.hpp"

#include <algorithm>
#include <limits>

#include "engine/describe.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"
#include "util/width.hpp"

namespace dlock {
namespace {

// CI systems end a job that says nothing for ten minutes.
constexpr std::chrono::minutes kHeartbeat{5};
constexpr std::size_t kLeastOfKey = 4;

template <std::size_t size>
void copy_to(std::array<char, size>& out, std::string_view text) {
  const std::size_t cut = std::min(text.size(), size - 1);
  std::copy_n(text.begin(), cut, out.begin());
}

std::int32_t number_or_none(std::optional<unsigned> number) {
  constexpr unsigned kMost = std::numeric_limits<std::int32_t>::max();
  return number ? static_cast<std::int32_t>(std::min(*number, kMost)) : -1;
}

std::string ordinal(std::int32_t number) {
  const std::int32_t last = number % 10;
  const bool teen = number / 10 % 10 == 1;
  return std::to_string(number) + (teen        ? "th"
                                   : last == 1 ? "st"
                                   : last == 2 ? "nd"
                                   : last == 3 ? "rd"
                                               : "th");
}

// The shown time changes each second, so tenths are dropped.
std::string in_seconds(Millis duration) {
  const Millis whole = std::chrono::floor<std::chrono::seconds>(duration);
  return util::format_duration(whole > Millis{0} ? whole : duration);
}

}  // namespace

Blocked Blocked::by(std::size_t key, const LockInfo& info) {
  Blocked out;
  out.key = static_cast<std::uint32_t>(key);
  out.place = number_or_none(info.place);
  out.waiting = number_or_none(count_waiters(info));
  copy_to(out.holder, holders_in_words(info));
  copy_to(out.brief, holders_in_brief(info));
  if (info.holders.empty()) return out;
  const LockInfo::Holder& first = info.holders.front();
  if (first.held) out.held_ms = first.held->count();
  copy_to(out.command, util::clipped(base_name(first.owner.command), 90));
  copy_to(out.label, first.owner.label.value_or(""));
  return out;
}

std::optional<Millis> Blocked::held() const {
  return held_ms < 0 ? std::nullopt : std::optional(Millis{held_ms});
}

bool Blocked::same_holder(const Blocked& other) const {
  return key == other.key && holder == other.holder && label == other.label;
}

void WaitReport::blocked(const Blocked& by, Deadline now) {
  blocked_ = by;
  heard_at_ = now;
}

std::optional<Millis> WaitReport::held(Deadline now) const {
  auto out = blocked_->held();
  if (out) *out += std::chrono::duration_cast<Millis>(now - heard_at_);
  return out;
}

// Our place if the queue of the service has an order; else the number of waiters.
std::string WaitReport::in_the_queue() const {
  if (blocked_->place > 0) {
    return " (" + ordinal(blocked_->place) + " of " +
           std::to_string(std::max(blocked_->place, blocked_->waiting)) + ')';
  }
  return blocked_->waiting > 1 ? " (one of " + std::to_string(blocked_->waiting) + ')' : "";
}

std::string WaitReport::line(Deadline now, std::size_t columns) const {
  struct Parts {
    bool place, held, command, key;
  };
  constexpr std::array kFromMostToLeast{
      Parts{true, true, true, true}, Parts{true, true, false, true},
      Parts{true, true, false, false}, Parts{false, true, false, false},
      Parts{false, false, false, false}};
  const std::string key = util::printable(keys_[blocked_->key]);
  const std::string command = blocked_->command.data();
  const auto held_for = held(now);
  std::string text;
  for (const Parts& parts : kFromMostToLeast) {
    text = "waiting " + in_seconds(std::chrono::duration_cast<Millis>(now - started_));
    if (parts.place) text += in_the_queue();
    text += ": held ";
    if (parts.held && held_for) text += in_seconds(*held_for) + ' ';
    text += std::string("by ") + blocked_->brief.data();
    if (parts.command && !command.empty()) text += " (" + command + ')';
    const std::size_t width = util::display_width(text);
    if (width > columns) continue;
    if (!parts.key) return text;
    const std::size_t room = columns - width < 2 ? 0 : columns - width - 2;
    if (room < std::min(util::display_width(key), kLeastOfKey)) continue;
    return text + ", " + util::cut_to_width(key, room);
  }
  return text;
}

std::string WaitReport::take_label() {
  if (labelled_ && labelled_->same_holder(*blocked_)) return "";
  labelled_ = blocked_;
  return blocked_->label.data();
}

std::vector<std::string> WaitReport::take_lines(Deadline now) {
  if (!blocked_) return {};
  const bool is_new = !said_ || said_->key != blocked_->key;
  const bool same = !is_new && said_->same_holder(*blocked_);
  if (same && now < next_) return {};
  next_ = after(now, kHeartbeat);
  const std::string key = util::in_quotes(keys_[blocked_->key]);
  std::string by = held_in_words(blocked_->holder.data(), held(now));
  if (blocked_->label[0] != 0) by += std::string(": ") + blocked_->label.data();
  said_ = blocked_;
  const std::string waited =
      " after " + in_seconds(std::chrono::duration_cast<Millis>(now - started_)) + in_the_queue();
  if (same) return {"still waiting for " + key + waited + "; same holder"};
  if (!is_new) return {"still waiting for " + key + waited + "; " + by};
  return {"waiting for " + key + in_the_queue() +
              (at_most_ ? ", for at most " + util::format_duration(*at_most_) : ""),
          by};
}

std::string WaitReport::acquired(Deadline now) const {
  if (!said_) return "";
  return "acquired " + keys_in_words(keys_) + " after " +
         in_seconds(std::chrono::duration_cast<Millis>(now - started_));
}

}  // namespace dlock
