#include "redlock_node.hpp"

#include <algorithm>
#include <set>

namespace dlock::sim {

// A server counts in whole milliseconds.  A key is over when its expiry has passed, a member of a
// ZSET when it has come: see purge() in common.lua.
Millis Node::purge(Deadline now) {
  const auto ms = std::chrono::floor<Millis>(now.time_since_epoch());
  std::erase_if(holders_, [&](const Holder& holder) {
    return mode_ == Mode::exclusive ? ms > holder.expires : ms >= holder.expires;
  });
  for (const Holder& holder : holders_) {
    if (ms - holder.asked > ttl_) kept_too_long_ = true;
  }
  return ms;
}

Node::Holder* Node::find(Id id) {
  const auto at = std::find_if(holders_.begin(), holders_.end(),
                               [&](const Holder& holder) { return holder.id == id; });
  return at == holders_.end() ? nullptr : &*at;
}

bool Node::has(Id id) const {
  return std::any_of(holders_.begin(), holders_.end(),
                     [&](const Holder& holder) { return holder.id == id; });
}

unsigned Node::number_of(Id id) const {
  for (const auto& [number, holder] : numbers_) {
    if (holder == id) return number;
  }
  return 0;
}

bool Node::has_no_two_numbers() const {
  std::set<Id> seen;
  return std::all_of(numbers_.begin(), numbers_.end(), [&](const auto& one) {
    return !has(one.second) || seen.insert(one.second).second;
  });
}

std::string Node::taken_by_others(Id id) const {
  std::string out(slots_, '0');
  for (const auto& [number, holder] : numbers_) {
    if (holder != id && has(holder)) out[number - 1] = '1';
  }
  return out;
}

void Node::drop_numbers(Id id) {
  std::erase_if(numbers_, [id](const auto& one) { return one.second == id; });
}

bool Node::take_number(Id id, unsigned slot) {
  if (slot == 0) return true;
  const auto at = numbers_.find(slot);
  if (at != numbers_.end() && at->second == id) return true;
  const bool taken = at != numbers_.end() && has(at->second);
  drop_numbers(id);
  if (taken && !bugs.gives_numbers_twice) return false;
  numbers_[slot] = id;
  return true;
}

bool Node::grant(Id id, Mode mode, bool wants_number, Deadline now) {
  const Millis ms = purge(now);
  if (Holder* ours = find(id)) {  // the answer got lost
    *ours = {.id = id, .expires = ms + ttl_, .asked = ms};
    return true;
  }
  if (!holders_.empty()) {
    if (mode != mode_ || mode == Mode::exclusive) return false;
    if (mode == Mode::slots && holders_.size() >= slots_) return false;
  }
  drop_numbers(id);  // of an earlier grant
  if (mode == Mode::slots && wants_number) {
    const auto free = taken_by_others(id).find('0');
    if (free == std::string::npos) return false;
    numbers_[static_cast<unsigned>(free) + 1] = id;
  }
  again_ = counter_ == 0 || (again_ && !holders_.empty());
  mode_ = mode;
  holders_.push_back({.id = id, .expires = ms + ttl_, .asked = ms});
  return true;
}

Node::Written Node::write(Id id, std::uint64_t token, unsigned slot, Deadline now) {
  purge(now);
  Holder* ours = find(id);
  if (ours == nullptr) return Written::gone;
  if (bugs.takes_the_number_first && !take_number(id, slot)) return Written::taken;
  const bool ties = counter_ == token && (ours->token == token || bugs.any_token_ties);
  if (counter_ >= token && !ties) return Written::overtaken;
  if (!take_number(id, slot)) return Written::taken;
  counter_ = token;
  ours->token = token;
  return Written::written;
}

Node::Renewed Node::renew(Id id, unsigned slot, Deadline now) {
  const Millis ms = purge(now);
  if (Holder* ours = find(id)) {
    ours->expires = ms + ttl_;
    ours->asked = ms;
    return take_number(id, slot) ? Renewed::renewed : Renewed::taken;
  }
  if (!bugs.renews_any || holders_.empty()) return Renewed::gone;
  changed_foreign_ = true;
  for (Holder& holder : holders_) holder.expires = ms + ttl_;
  return Renewed::renewed;
}

bool Node::remove(Id id, Deadline now) {
  purge(now);
  if (bugs.removes_any && !holders_.empty()) {
    if (find(id) == nullptr) changed_foreign_ = true;
    holders_.clear();
    return true;
  }
  return std::erase_if(holders_, [&](const Holder& holder) { return holder.id == id; }) > 0;
}

bool Node::give_again(Id id, Mode mode, std::uint64_t token, unsigned slot, Millis rest,
                      Deadline now) {
  if (bugs.gives_again_what_is_taken && find(id) == nullptr && !holders_.empty()) {
    changed_foreign_ = true;
    holders_.clear();
  }
  purge(now);
  const bool shares = mode != Mode::exclusive && !holders_.empty() && again_;
  if (counter_ >= token && !shares && !bugs.gives_again_what_is_taken) return false;
  if (!grant(id, mode, false, now)) return false;
  if (!take_number(id, slot)) {
    remove(id, now);
    return false;
  }
  Holder& ours = *find(id);
  ours.expires -= ttl_ - rest;
  ours.token = token;
  counter_ = std::max(counter_, token);
  again_ = true;
  return true;
}

void Node::forget() {
  holders_.clear();
  numbers_.clear();
  counter_ = 0;
}

}  // namespace dlock::sim
