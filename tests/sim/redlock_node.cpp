#include "redlock_node.hpp"

#include <algorithm>

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

bool Node::grant(Id id, Mode mode, Deadline now) {
  const Millis ms = purge(now);
  if (Holder* ours = find(id)) {  // the answer got lost
    *ours = {.id = id, .expires = ms + ttl_, .asked = ms};
    return true;
  }
  if (!holders_.empty()) {
    if (mode != mode_ || mode == Mode::exclusive) return false;
    if (mode == Mode::slots && holders_.size() >= kSlots) return false;
  }
  mode_ = mode;
  holders_.push_back({.id = id, .expires = ms + ttl_, .asked = ms});
  return true;
}

Node::Written Node::write(Id id, std::uint64_t token, Deadline now) {
  purge(now);
  Holder* ours = find(id);
  if (ours == nullptr) return Written::gone;
  const bool ties = counter_ == token && (ours->token == token || bugs.any_token_ties);
  if (counter_ >= token && !ties) return Written::overtaken;
  counter_ = token;
  ours->token = token;
  return Written::written;
}

bool Node::renew(Id id, Deadline now) {
  const Millis ms = purge(now);
  if (Holder* ours = find(id)) {
    ours->expires = ms + ttl_;
    ours->asked = ms;
    return true;
  }
  if (!bugs.renews_any || holders_.empty()) return false;
  changed_foreign_ = true;
  for (Holder& holder : holders_) holder.expires = ms + ttl_;
  return true;
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

bool Node::give_again(Id id, Mode mode, std::uint64_t token, Millis rest, Deadline now) {
  if (bugs.gives_again_what_is_taken && find(id) == nullptr && !holders_.empty()) {
    changed_foreign_ = true;
    holders_.clear();
  }
  if ((counter_ >= token && !bugs.gives_again_what_is_taken) || !grant(id, mode, now)) return false;
  Holder& ours = *find(id);
  ours.expires -= ttl_ - rest;
  ours.token = token;
  counter_ = std::max(counter_, token);
  return true;
}

void Node::forget() {
  holders_.clear();
  counter_ = 0;
}

}  // namespace dlock::sim
