#include "backends/sql/lock_rows.hpp"

#include <algorithm>
#include <array>

#include "core/lock_record.hpp"
#include "util/host.hpp"

namespace dlock::sql {
namespace {

// In the order of LockRow::Role.
constexpr std::array<std::string_view, 3> kRoles{"holder", "waiter", "broken"};

// Rounded up: what has not expired has something left.
Millis left_of(long long micros) { return Millis{(micros + (micros > 0 ? 999 : 0)) / 1'000}; }

LockRecord record_of(const LockRow& row) {
  LockRecord record = parse_lock_record(row.record).value_or(LockRecord{});
  record.owner.id = row.owner;
  return record;
}

// As {columns} has them.
std::optional<LockRow> parse_row(const Row& row) {
  const auto role = parse_role(text(row, 1));
  if (row.size() != 12 || !role) return std::nullopt;
  LockRow out;
  out.owner = text(row, 0);
  out.role = *role;
  out.key = text(row, 2);
  // A mode that this version does not know excludes all others.
  out.claim.mode = parse_mode(text(row, 3)).value_or(Mode::exclusive);
  out.claim.slots = static_cast<unsigned>(std::clamp<std::uint64_t>(number(row, 4), 1, 65'535));
  out.slot = static_cast<unsigned>(std::min<std::uint64_t>(number(row, 5), 65'535));
  out.fence = number(row, 6);
  out.age = std::max(Millis{signed_number(row, 7) / 1'000}, Millis{0});
  if (row[8]) out.left = left_of(signed_number(row, 8));
  out.expires_at = text(row, 9);
  out.has_session = row[10].has_value();
  out.record = text(row, 11);
  return out;
}

}  // namespace

std::optional<LockRow::Role> parse_role(std::string_view name) {
  const auto* found = std::find(kRoles.begin(), kRoles.end(), name);
  if (found == kRoles.end()) return std::nullopt;
  return static_cast<LockRow::Role>(found - kRoles.begin());
}

std::vector<LockRow> lock_rows_of(const Answer& answer) {
  std::vector<LockRow> out;
  for (const Row& row : answer.rows) {
    if (auto parsed = parse_row(row)) out.push_back(std::move(*parsed));
  }
  return out;
}

const LockRow* find_row(std::span<const LockRow> rows, std::string_view owner) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const LockRow& row) { return row.owner == owner; });
  return found == rows.end() ? nullptr : &*found;
}

LockInfo lock_info(const std::string& key, std::span<const LockRow> rows) {
  LockInfo info{.key = key};
  info.waiters.emplace();
  for (const LockRow& row : rows) {
    if (!row.is_alive()) continue;
    LockRecord record = record_of(row);
    if (row.role == LockRow::Role::waiter) {
      info.waiters->push_back({std::move(record.owner), row.claim.mode, row.age});
      continue;
    }
    info.mode = row.claim.mode;
    info.slots = row.claim.slots;
    LockInfo::Holder holder;
    holder.owner = std::move(record.owner);
    holder.ttl = record.ttl;
    holder.acquired_at = util::utc_in(-row.age);
    holder.held = row.age;
    if (row.left) holder.expires = std::max(*row.left, Millis{0});
    holder.endless = !row.left;
    holder.fence = row.fence;
    if (row.claim.mode == Mode::slots && row.slot > 0) holder.slot = row.slot;
    info.holders.push_back(std::move(holder));
  }
  return info;
}

Look look_of(std::span<const Answer> answers) {
  Look look;
  if (answers.size() < 2) return look;
  const Row& state = first_row(answers[answers.size() - 2]);
  look.is_writable = is_true(state, 0);
  if (state.size() > 1) look.version = state[1];
  look.own = parse_role(text(state, 2));
  look.has_waiters_before = is_true(state, 3);
  look.rows = lock_rows_of(answers.back());
  return look;
}

Decision decide(const Look& look, Claim claim, std::string_view own) {
  Decision out;
  std::vector<const LockRow*> alive;
  std::vector<Queued> queue;
  std::vector<unsigned> taken;
  for (const LockRow& row : look.rows) {
    if (row.owner == own) break;
    if (!row.is_alive()) {
      if (row.role == LockRow::Role::holder) out.over.push_back(&row);
      continue;
    }
    alive.push_back(&row);
    queue.push_back({row.claim});
    if (row.role == LockRow::Role::holder) taken.push_back(row.slot);
  }
  queue.push_back({claim});
  const Turn turn = turn_of(queue, alive.size());
  out.kind = turn.kind;
  if (turn.kind == Turn::Kind::granted) {
    if (claim.mode == Mode::slots) out.slot = free_slot(taken, claim.slots);
  } else {
    out.first = alive.at(turn.kind == Turn::Kind::wait_for_one ? turn.index : 0);
  }
  return out;
}

}  // namespace dlock::sql
