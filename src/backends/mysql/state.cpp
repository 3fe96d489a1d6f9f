// A holder counts until it expires by the server's clock, if it does at all; and as long as
// its connection is there.  A waiter counts as long as its connection is there: its row may be left
// over.
//
// Chains.  A waiter waits for the middle one of the waiters that must acquire the lock before it,
// and then looks again: the one waited for has left the queue before our turn comes.  Waiting for
// the nearest one would make a chain of GET_LOCK waits as long as the queue, and MySQL searches
// each chain for deadlocks: it refuses every wait behind 31 others (MAX_SEARCH_DEPTH in
// sql/mdl.cc).  With the middle one, the chain of n waiters is log2(n) long, and each looks about
// log2(n) times.
//
// Of several holders, a waiter waits for one that is there: its mark wakes those that wait for it.
// Of slots, for the oldest: it is the likeliest to be done.  For a holder that is not there the
// first waiter looks (see acquire_waiting.cpp).  Readers behind that one wait for its mark: it
// releases the mark when it acquires the lock.
#include "backends/mysql/state.hpp"

#include <algorithm>
#include <iterator>

#include "core/lock_record.hpp"
#include "util/host.hpp"

namespace dlock::mysql {
namespace {

std::string text(const Row& row, std::size_t column) {
  return column < row.size() ? row[column].value_or("") : "";
}

// Of microseconds, rounded up: what has not expired has something left.
Millis left_of(long long micros) { return Millis{(micros + (micros > 0 ? 999 : 0)) / 1'000}; }

LockRecord record_of(const Party& party) {
  LockRecord record = parse_lock_record(party.record).value_or(LockRecord{});
  record.owner.id = party.owner;
  return record;
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
  party.expires_at = text(row, 12);
  return party;
}

std::vector<Party> parties_of(const Answer& rows) {
  std::vector<Party> parties;
  for (const Row& row : rows.rows) {
    if (auto party = parse_party(row)) parties.push_back(std::move(*party));
  }
  return parties;
}

State::State(std::vector<Party> parties) {
  for (Party& party : parties) {
    const bool lives = party.left.value_or(Millis{1}) > Millis{0};
    if (party.kind == Kind::waiter) {
      (party.present ? waiters_ : departed_).push_back(std::move(party));
    } else if (party.kind == Kind::holder && (lives || party.present)) {
      holders_.push_back(std::move(party));
    }
  }
}

LockInfo State::info(const std::string& key) const {
  LockInfo info{.key = key};
  if (!holders_.empty()) {
    info.mode = holders_.front().mode;
    info.slots = holders_.front().slots;
  }
  for (const Party& party : holders_) {
    LockInfo::Holder holder;
    LockRecord record = record_of(party);
    holder.owner = std::move(record.owner);
    holder.ttl = record.ttl;
    holder.acquired_at = util::utc_in(-party.age);
    holder.held = party.age;
    if (party.left) holder.expires = std::max(*party.left, Millis{0});
    holder.endless = !party.left;
    holder.fence = party.fence;
    if (party.mode == Mode::slots && party.slot > 0) holder.slot = party.slot;
    info.holders.push_back(std::move(holder));
  }
  info.waiters.emplace();
  for (const Party& party : waiters_) {
    info.waiters->push_back({record_of(party).owner, party.mode, party.age});
  }
  return info;
}

State::Decision State::decide(const Request& request, std::uint64_t own) const {
  using Is = Decision::Kind;
  for (const Party& holder : holders_) {
    if (!modes_mix({holder.mode, holder.slots}, request.claim())) {
      return {Is::conflict, &holder, 0};
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
  Decision behind{Is::behind, count > 0 ? &waiters_[(count - 1) / 2] : nullptr, ahead};
  if (request.mode == Mode::slots) {
    if (holders_.size() + ahead < request.slots) return {Is::take, nullptr, ahead};
    if (count > 0) return behind;
    const auto oldest =
        std::max_element(holders_.begin(), holders_.end(), [](const Party& a, const Party& b) {
          return std::pair(a.present, a.age) < std::pair(b.present, b.age);
        });
    return {Is::room, &*oldest, ahead};
  }
  if (count > 0) return behind;
  const Party* held = nullptr;
  for (const Party& holder : holders_) {
    if (request.mode == Mode::shared && holder.mode == Mode::shared) continue;
    if (held == nullptr || (holder.present && !held->present)) held = &holder;
  }
  if (held == nullptr) return {Is::take, nullptr, ahead};
  if (held->present) return {Is::held, held, ahead};
  if (ahead == 0) return {Is::room, held, ahead};
  behind.party = &waiters_.front();
  return behind;
}

}  // namespace dlock::mysql
