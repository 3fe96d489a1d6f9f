// A holder counts as long as its connection is there, and, but with mysql-row, until it expires by
// the server's clock, for ever if it does not.  With mysql-row it also counts while its processes
// are seen to live on this machine.  A waiter counts as long as its connection is there: its row
// may be left over.
//
// Chains.  A waiter waits for the middle one of the waiters that must acquire the lock before it,
// and then looks again: the one waited for has left the queue before our turn comes.  Waiting for
// the nearest one would make a chain of GET_LOCK waits as long as the queue, and MySQL searches
// each chain for deadlocks: it refuses every wait behind 31 others (MAX_SEARCH_DEPTH in
// sql/mdl.cc).  With the middle one, the chain of n waiters is log2(n) long, and each looks about
// log2(n) times.
//
// Of several holders, a waiter waits for one that is there: its mark wakes those that wait for it.
// A holder that is not there wakes the first waiter only (see acquire_waiting.cpp).  Readers behind
// that one wait for its mark: it releases the mark when it acquires the lock.
#include "backends/mysql/state.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "core/lock_record.hpp"
#include "util/host.hpp"
#include "util/life.hpp"

namespace dlock::mysql {
namespace {

std::string text(const Row& row, std::size_t column) {
  return column < row.size() ? row[column].value_or("") : "";
}

// Of microseconds, rounded up: what has not expired has something left.
Millis left_of(long long micros) { return Millis{(micros + (micros > 0 ? 999 : 0)) / 1'000}; }

Owner owner_of(const Party& party) {
  Owner owner = parse_lock_record(party.record).value_or(LockRecord{}).owner;
  owner.id = party.owner;
  return owner;
}

// Of the holder whose session has ended.  What dlock did not write stands for no command.
util::Life life_of(const Party& party) {
  const auto record = parse_lock_record(party.record);
  return record ? util::watch_life(record->life).life : util::Life::ended;
}

// Readers acquire the lock together.
std::size_t turns_of(std::span<const Party> waiters) {
  std::size_t turns = 0;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (i == 0 || waiters[i].mode != Mode::shared || waiters[i - 1].mode != Mode::shared) ++turns;
  }
  return turns;
}

bool has_expired(const Party& party) { return party.left.value_or(Millis{1}) <= Millis{0}; }

// Of a holder with mysql-row whose session has ended: whether its command is waited for.
bool may_run(const Party& party) {
  const auto record = parse_lock_record(party.record);
  return record && record->ttl && !record->owner.ended && !has_expired(party) &&
         util::watch_life(record->life).life != util::Life::ended;
}

// Among the holders that are shown.  With mysql-row, one that waits for the command of an earlier
// one has its number only after that.
bool has_number(const Party& party, const std::vector<Party>& holders) {
  return party.mode == Mode::slots && party.slot > 0 &&
         std::none_of(holders.begin(), holders.end(), [&](const Party& other) {
           return other.slot == party.slot && other.id < party.id;
         });
}

// Of a holder that has locked `slot`, with one that may still run.
bool conflict(const Request& request, unsigned slot, const Party& party) {
  if (!modes_mix(party.mode, party.slots, request.mode, request.slots)) return true;
  if (request.mode == Mode::slots) return party.slot == slot;
  return request.mode == Mode::exclusive || party.mode == Mode::exclusive;
}

}  // namespace

std::optional<Party> parse_party(const Row& row) {
  if (row.size() != 13) return std::nullopt;
  const long long kind = signed_number(row, 1);
  const long long mode = signed_number(row, 4);
  if (kind < 0 || kind > 2) return std::nullopt;
  Party party;
  party.id = number(row, 0);
  party.kind = static_cast<Kind>(kind);
  party.name = text(row, 2);
  party.owner = text(row, 3);
  // A mode that we do not know mixes with none, here as in Statements::in_way().
  party.mode = mode < 0 || mode > 2 ? Mode::exclusive : static_cast<Mode>(mode);
  party.slots = static_cast<unsigned>(std::clamp<std::uint64_t>(number(row, 5), 1, 65'535));
  party.fence = number(row, 6);
  party.age = std::max(Millis{signed_number(row, 7) / 1'000}, Millis{0});
  if (row[8]) party.left = left_of(signed_number(row, 8));
  party.present = row[9].has_value();
  party.slot = static_cast<unsigned>(std::min<std::uint64_t>(number(row, 10), 65'535));
  party.record = text(row, 11);
  party.beats = number(row, 12);
  return party;
}

std::vector<Party> parties_of(const Answer& rows) {
  std::vector<Party> parties;
  for (const Row& row : rows.rows) {
    if (auto party = parse_party(row)) parties.push_back(std::move(*party));
  }
  return parties;
}

State::State(Method method, std::vector<Party> parties) : method_(method) {
  for (Party& party : parties) {
    if (party.kind == Kind::waiter) {
      (party.present ? waiters_ : departed_).push_back(std::move(party));
    } else if (party.kind == Kind::holder) {
      const bool runs = method == Method::row
                            ? !party.present && life_of(party) == util::Life::alive
                            : !has_expired(party);
      (runs || party.present ? holders_ : ended_).push_back(std::move(party));
    }
  }
}

std::vector<Party> State::earlier(const Request& request, std::uint64_t own, unsigned slot) const {
  std::vector<Party> out;
  for (const auto* parties : {&holders_, &ended_}) {
    std::copy_if(
        parties->begin(), parties->end(), std::back_inserter(out),
        [&](const Party& party) { return party.id < own && conflict(request, slot, party); });
  }
  return out;
}

std::vector<Party> State::delaying(const Request& request) const {
  std::vector<Party> out;
  if (request.mode != Mode::slots) return out;
  for (const auto* parties : {&holders_, &ended_}) {
    std::copy_if(parties->begin(), parties->end(), std::back_inserter(out), [](const Party& party) {
      return party.mode == Mode::slots && !party.present && may_run(party);
    });
  }
  return out;
}

LockInfo State::info(const std::string& key) const {
  if (method_ != Method::row) return info(key, holders_);
  std::vector<Party> holders = holders_;
  std::vector<std::string> remarks;
  for (const Party& party : ended_) {
    if (has_expired(party) || life_of(party) == util::Life::ended) continue;
    const Owner owner = owner_of(party);
    remarks.push_back("the connection of " + owner.host + " pid " + std::to_string(owner.pid) +
                      " has ended, and its command may still run: the next holder waits for "
                      "that, at most for its ttl");
    holders.push_back(party);
  }
  LockInfo out = info(key, holders);
  out.remarks = std::move(remarks);
  return out;
}

LockInfo State::info(const std::string& key, const std::vector<Party>& holders) const {
  LockInfo info{.key = key};
  if (!holders.empty()) {
    info.mode = holders.front().mode;
    info.slots = holders.front().slots;
  }
  for (const Party& party : holders) {
    LockInfo::Holder holder;
    holder.owner = owner_of(party);
    holder.acquired_at = util::utc_in(-party.age);
    holder.held = party.age;
    if (party.left) holder.expires = std::max(*party.left, Millis{0});
    holder.endless = !party.left && method_ != Method::row;
    holder.fence = party.fence;
    if (has_number(party, holders)) holder.slot = party.slot;
    info.holders.push_back(std::move(holder));
  }
  info.waiters.emplace();
  for (const Party& party : waiters_) {
    info.waiters->push_back({owner_of(party), party.mode, party.age});
  }
  return info;
}

State::Decision State::decide(const Request& request, std::uint64_t own) const {
  using Is = Decision::Kind;
  for (const Party& holder : holders_) {
    if (!modes_mix(holder.mode, holder.slots, request.mode, request.slots)) {
      return {Is::conflict, &holder, 0, 0};
    }
  }
  const auto end = std::find_if(waiters_.begin(), waiters_.end(),
                                [&](const Party& waiter) { return own != 0 && waiter.id >= own; });
  const auto ahead = static_cast<std::size_t>(end - waiters_.begin());
  // Readers acquire the lock together: what is behind the last writer ahead is not in our way.
  auto in_way = end;
  if (request.mode == Mode::shared) {
    while (in_way != waiters_.begin() && std::prev(in_way)->mode == Mode::shared) --in_way;
  }
  const auto count = in_way - waiters_.begin();
  Decision behind{Is::behind, count > 0 ? &waiters_[(count - 1) / 2] : nullptr, ahead, 0};
  if (request.mode == Mode::slots) {
    behind.rank = ahead / request.slots + ahead % request.slots;
    if (holders_.size() + ahead < request.slots) return {Is::take, nullptr, ahead, 0};
    if (count > 0) return behind;
    const auto soonest =
        std::min_element(holders_.begin(), holders_.end(), [](const Party& a, const Party& b) {
          return a.left.value_or(Millis::max()) < b.left.value_or(Millis::max());
        });
    return {Is::unmarked, &*soonest, ahead, 0};
  }
  behind.rank = turns_of({waiters_.data(), static_cast<std::size_t>(count)}) +
                static_cast<std::size_t>(end - in_way);
  if (count > 0) return behind;
  const Party* held = nullptr;
  for (const Party& holder : holders_) {
    if (request.mode == Mode::shared && holder.mode == Mode::shared) continue;
    if (held == nullptr || (holder.present && !held->present)) held = &holder;
  }
  if (held == nullptr) return {Is::take, nullptr, ahead, 0};
  if (held->present || method_ == Method::row) return {Is::held, held, ahead, 0};
  if (ahead == 0) return {Is::unmarked, held, ahead, 0};
  behind.party = &waiters_.front();
  return behind;
}

}  // namespace dlock::mysql
