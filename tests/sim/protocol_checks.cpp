// What must be true, at each event that could break it, of all that the others do at that instant.
#include <algorithm>

#include "protocol_world.hpp"

namespace dlock::sim::protocol {

void World::broken(Broken kind, const std::string& how) {
  if (verdict_.broken) return;
  if (watch_.only && kind != *watch_.only) return;
  const bool of_claims = kind == Broken::claims || kind == Broken::lost_too_soon;
  if (of_claims && !watch_.claims) return;
  // Then it is true.
  if (kind == Broken::lost_too_soon && setting_.crashes >= Crashes::forget_for_a_ttl) return;
  verdict_.broken = kind;
  verdict_.how = std::string(name_of(kind)) + " at " +
                 std::to_string(static_cast<double>(now_.count()) / 1e9) + " s: " + how;
  say(verdict_.how);
}

void World::check_overlap(Broken kind, const std::function<bool(const Client&)>& has) {
  std::string all;
  unsigned count = 0;
  std::optional<Mode> mode;
  bool mixed = false;
  std::set<unsigned> numbers;
  for (const Client& each : clients_) {
    if (!has(each) || each.is_broken) continue;
    ++count;
    mixed = mixed || (mode && *mode != each.mode);
    mode = each.mode;
    if (mode == Mode::slots) numbers.insert(each.slot);
    all += " " + each.waiter.grant_id(each.round) + " (client " + std::to_string(each.number) + ")";
  }
  if (count < 2) return;
  const unsigned most = mode == Mode::shared ? count : mode == Mode::slots ? setting_.slots : 1;
  const bool distinct = mode != Mode::slots || numbers.size() == count;
  if (mixed || count > most || !distinct) broken(kind, all);
}

void World::check_fence(const Client& client) {
  if (client.is_broken) return;  // before it heard of the grant: a later one may have been there
  if (!fences_.insert(client.fence).second) {
    broken(Broken::equal_fences, std::to_string(client.fence));
  }
  // The largest of those that were granted before this one was asked for.
  const Nanos asked_at =
      client.mode == Mode::exclusive ? now_ : client.clock.true_time(client.protocol->asked_at());
  const auto later =
      std::lower_bound(largest_fences_.begin(), largest_fences_.end(), asked_at,
                       [](const auto& grant, Nanos when) { return grant.first < when; });
  if (later != largest_fences_.begin() && std::prev(later)->second > client.fence) {
    broken(Broken::falling_fence,
           std::to_string(client.fence) + " after " + std::to_string(std::prev(later)->second));
  }
  const std::uint64_t before = largest_fences_.empty() ? 0 : largest_fences_.back().second;
  largest_fences_.emplace_back(now_, std::max(before, client.fence));
}

// One server, one mode, nothing fails: in the order in which they came.
void World::check_order(const Client& client) {
  if (!single() || setting_.use != Use::exclusive || !setting_.reliable ||
      setting_.stopped + setting_.killed > 0 || setting_.crowd_stops) {
    return;
  }
  for (const Client& other : clients_) {
    const bool was_earlier = other.doing == Doing::acquiring && other.was_refused &&
                             other.came_at + Millis{20} < client.came_at;
    if (was_earlier) broken(Broken::out_of_order, std::to_string(other.number));
  }
}

// It waits, and reaches all servers.
bool World::is_alive(const Client& client) const {
  const auto is_cut = [this](Nanos until) { return until > now_; };
  const auto& cuts = cut_until_[client.number];
  const bool is_far = setting_.one_reaches_only_first && client.number == 0;
  return client.doing == Doing::acquiring && client.waits && !is_far &&
         client.thawed + Millis{100} <= now_ && std::none_of(cuts.begin(), cuts.end(), is_cut);
}

// For one more, but for what living clients still work at, and for what was given up in order.
bool World::has_room(SimServer& server) {
  if (server.down) return false;
  const auto holders = server.holders(now_);
  const auto stand_in_the_way =
      std::count_if(holders.begin(), holders.end(), [this](const SimServer::Holder& holder) {
        if (holder.round == 0 || gone_.contains(holder.waiter)) return false;
        const Client& client = clients_[client_of_.at(holder.waiter)];
        return client.waiter.id != holder.waiter || client.doing != Doing::acquiring ||
               client.stopped_until > now_;
      });
  return stand_in_the_way < most_holders();
}

void World::watch_the_lock() {
  constexpr Millis kPause{20};
  at(now_ + kPause, [this] { watch_the_lock(); });
  const Nanos settled = setting_.calm_from + setting_.ttl * 5 / 2 + Millis{4'000};
  if (!setting_.always_live && now_ < settled) return;
  const auto holders = std::count_if(clients_.begin(), clients_.end(),
                                     [this](const Client& client) { return claims(client); });
  const auto open = std::count_if(servers_.begin(), servers_.end(),
                                  [this](SimServer& server) { return has_room(server); });
  if (holders >= most_holders() || static_cast<unsigned>(open) < needed()) {
    free_since_.reset();
    return;
  }
  if (!free_since_) free_since_ = now_;
  for (const Client& client : clients_) {
    if (!is_alive(client)) continue;
    const Nanos since = std::max({*free_since_, client.came_at, client.thawed});
    verdict_.longest_free = std::max(verdict_.longest_free, now_ - since);
    if (now_ - since > setting_.free_at_most) {
      return broken(Broken::free_too_long, "client " + std::to_string(client.number) + " waits");
    }
  }
}

const char* name_of(Broken broken) {
  switch (broken) {
    case Broken::claims:
      return "two leases overlap";
    case Broken::jobs:
      return "two jobs overlap";
    case Broken::equal_fences:
      return "two equal fences";
    case Broken::falling_fence:
      return "a fence that falls";
    case Broken::lost_too_soon:
      return "told to be lost while it was good";
    case Broken::early_release:
      return "released before the job had ended";
    case Broken::server:
      return "a script has gone wrong";
    case Broken::outlived_break:
      return "held although it was force-released";
    case Broken::free_too_long:
      return "free while a client waits";
    case Broken::out_of_order:
      return "another came first";
    case Broken::left:
      return "something is left";
  }
  return "";
}

}  // namespace dlock::sim::protocol
