// Trying.   The row lock is taken on the connection that keeps it, and never waited for (SKIP
//           LOCKED): if the process of a waiter were stopped meanwhile, the server would grant its
//           session the lock, and nobody would run.  Waiters sleep as acquire.cpp says.  Then, on
//           another one, a row of the table of locks records the holder and the number of the
//           grant: what the transaction that holds the row lock writes would be undone if the
//           server crashed, and the number given twice.
// Delay.    (Chubby calls it lock delay.)  The row lock ends with its connection.  Then the next
//           holder can have it before the earlier one knows of its loss and has ended its command:
//             1. A holds the row lock; its command runs.  The server is killed and restarted.
//             2. B connects and locks the row.  A reads that its connection is gone.
//             3. A sends SIGTERM to its command, which takes a second to end.
//           So A removes its own record once its command has ended, on a new connection.  B keeps
//           its own row lock renewed, and its acquire() returns when no record of an earlier
//           holder is left, or when the ttl in that record is over, counted from B's grant: A's
//           session had ended by then, so A's last renewal was before that, and A ends its command
//           within a ttl of its last renewal.  A record of this machine is ignored once the kernel
//           says that no process of that holder is left (util/life.hpp).
// Slots.    The number of a slot is that of the row that is locked.  While the command of a holder
//           whose session has ended may still run, its number is not free.  The next holder locks
//           the first of the other rows that is free.  Perhaps nobody will wait for that number:
//           so it writes into the record when it is over, see below.  If no other row is free, it
//           locks the row with such a number, and waits as above.
// Giving up. With --nonblock each try gives up at once, and none would ever wait for a whole ttl.
//           So the first one that finds the record writes into it when it is over, by the server's
//           clock.  Only later ones go by that: who has waited for a ttl needs no clock but its
//           own.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/acquisition.hpp"
#include "backends/mysql/errors.hpp"
#include "core/lock_record.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"

namespace dlock::mysql {
namespace {

// Between two looks whether an earlier holder has removed its record.  No lock of the server can
// tell it: those of that holder have ended.
constexpr Millis kLookForRecord{250};
constexpr Millis kNobodySaid = Millis::max();

}  // namespace

// Whether this server can do it at all, which rows there are, and who is in the way.
Result<Reply> Acquisition::survey() {
  for (bool created = false;;) {
    auto reply = ask(statements_.survey(request_.owner.id));
    if (!reply) return reply.error();
    const auto& answers = reply.value().answers;
    if (answers.size() != 5) {
      return Error{
          Errc::unreachable,
          place_->shown +
              ": sent an answer that dlock does not understand; is it a MySQL or MariaDB?"};
    }
    if (number_in(answers[1]) != 1) {
      if (auto ok = look_at_tables(); !ok) return ok.error();
      continue;
    }
    if (!connection_->skips_locked()) {
      return Error{Errc::unsupported, place_->shown +
                                          ": is too old for mysql-row, which needs SKIP LOCKED "
                                          "(MariaDB 10.6, MySQL 8.0.1); use mysql-table"};
    }
    if (!answers[2].rows.empty()) {
      const Row& variable = answers[2].rows[0];
      return Error{
          Errc::unsupported,
          place_->shown + ": is one of several servers that accept writes (" +
              util::printable(variable.at(0).value_or("") + '=' + variable.at(1).value_or("")) +
              "), where a row lock is known to one of them only; use mysql-version"};
    }
    std::vector<unsigned> missing(1U + (request_.mode == Mode::slots ? request_.slots : 1U));
    std::iota(missing.begin(), missing.end(), 0U);
    for (const Row& row : answers[3].rows) {
      std::erase(missing, static_cast<unsigned>(number(row, 0)));
    }
    if (missing.empty() || created) return reply;
    if (auto ok = look_at_tables(); !ok) return ok.error();
    // A row that somebody created since we looked, and has locked, is there: no need to wait for
    // it.
    const std::string limit = "SET SESSION innodb_lock_wait_timeout = ";
    const Reply made = connection_->ask(
        limit + (connection_->mariadb() ? "0; " : "1; ") + statements_.create_rows(missing),
        patience(), wait_.cancel);
    if (!made.ok() && (connection_->broken() || !is_passing(made.code))) {
      return explain(made, *place_);
    }
    if (auto back = ask(limit + "50"); !back) return back.error();
    created = true;
  }
}

// 0: none is free.
Result<unsigned> Acquisition::lock_row(const std::vector<Party>& delaying) {
  std::vector<unsigned> avoid;
  for (const Party& party : delaying) avoid.push_back(party.slot);
  for (;; avoid.clear()) {
    const Reply reply = connection_->ask(
        statements_.lock_row(request_, connection_->mariadb(), avoid), patience(), wait_.cancel);
    if (!reply.ok() && (connection_->broken() || !is_passing(reply.code))) {
      return explain(reply, *place_);
    }
    const auto slot = reply.ok() ? static_cast<unsigned>(number_in(reply.answers.back())) : 0;
    if (slot != 0) return slot;
    if (auto undone = ask(statements_.unlock_row()); !undone) return undone.error();
    if (avoid.empty()) return 0;
  }
}

Result<Acquisition::Tried> Acquisition::attempt_row() {
  const auto surveyed = survey();
  if (!surveyed) return surveyed.error();
  State state = state_of(surveyed.value().answers.back());
  const Decision decision = state.decide(request_, own_);
  using Is = Decision::Kind;
  // The row lock of such a holder is free, and its command is waited for with the row locked.
  const bool has_ended = decision.kind == Is::held && own_ != 0 && !decision.party->present;
  if (decision.kind != Is::take && decision.kind != Is::unmarked && !has_ended) {
    return Tried{nullptr, std::move(state)};
  }
  const Deadline asked = Clock::now();
  const auto delaying = state.delaying(request_);
  const auto slot = lock_row(delaying);
  if (!slot) return slot.error();
  // The session that has locked it has not recorded that yet, or is not of dlock.
  if (slot.value() == 0) return Tried{nullptr, std::move(state)};
  return take_row(slot.value(), delaying, asked);
}

// Of the numbers that were avoided for `slot`.
std::string Acquisition::end_delays(const std::vector<Party>& delaying, unsigned slot) const {
  std::string text;
  for (const Party& party : delaying) {
    const Millis ttl =
        parse_lock_record(party.record).value_or(LockRecord{}).ttl.value_or(Millis{0});
    if (party.slot != slot && party.left.value_or(kNobodySaid) > ttl) {
      text += statements_.delay(party.id, ttl);
    }
  }
  return text;
}

Result<Acquisition::Tried> Acquisition::take_row(unsigned slot, const std::vector<Party>& delaying,
                                                 Deadline asked) {
  auto other = Connection::open(place_, patience(), wait_.cancel);
  if (!other) {
    connection_->close();  // and the row lock, which nobody uses
    return other.error();
  }
  std::swap(connection_, *other);  // connection_ is who is asked
  util::LifeToken life = util::make_life_token();
  auto reply = ask(forget_unused(recorder_mark(request_.owner.id)) + end_delays(delaying, slot) +
                   statements_.record_holder(request_, own_, slot, life.mark));
  std::swap(connection_, *other);
  if (!reply) {
    connection_->close();  // whatever was noted: without the row lock it means nothing
    earlier_ = std::move(*other);
    return reply.error();
  }
  const auto& [out, rows] = attempted(reply.value().answers);
  if (!out.fit) {
    connection_->close();
    return unfit(*place_);
  }
  Tried tried{nullptr, state_of(rows)};
  if (out.won == 0) {
    if (auto undone = ask(statements_.unlock_row()); !undone) return undone.error();
    return tried;
  }
  if (own_ != 0) {
    auto said = ask("DO " + statements_.marks().release(waiter_mark(request_.owner.id)));
    if (!said) return said.error();
  }
  tried.lease = lease(out, asked, std::move(life));
  patience_.answered();
  patience_.recovered();
  connection_ = std::move(*other);
  own_ = out.won;  // what leave() removes
  if (auto ok = outwait_earlier(*tried.lease, tried.state, out.won, slot); !ok) return ok.error();
  return tried;
}

// Until somebody wants something, or the lease has news.  `ends`: of a LifeWatch, or -1.
Result<void> Acquisition::pause_until(Deadline until, Lease& lease, int ends) {
  std::array<pollfd, 3> fds{
      {{wait_.cancel.fd(), POLLIN, 0}, {lease.event_fd(), POLLIN, 0}, {ends, POLLIN, 0}}};
  util::poll(fds, std::min(until, wait_.until));
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting"};
  return {};
}

// With the lease of the row lock, which has the row `row`; connection_ is another one.
Result<void> Acquisition::outwait_earlier(Lease& lease, State state, std::uint64_t row,
                                          unsigned slot) {
  struct Delay {
    Deadline until;
    util::LifeWatch watch;
    bool has_ended() const {
      return watch.life == util::Life::ended ||
             (watch.ends && util::wait_readable(watch.ends.get(), Deadline{}));
    }
  };
  std::map<std::uint64_t, Delay> delays;
  for (Deadline renewal = after(Clock::now(), request_.ttl / 3);;) {
    std::vector<std::uint64_t> over;
    std::vector<Party> running;
    std::string changes;
    Deadline until = std::min(renewal, after(Clock::now(), kLookForRecord));
    int ends = -1;
    for (Party& party : state.earlier(request_, row, slot)) {
      // What dlock did not write names no ttl, and stands for no command.
      const LockRecord record = parse_lock_record(party.record).value_or(LockRecord{});
      const Millis ttl = record.ttl.value_or(Millis{0});
      if (!delays.contains(party.id)) {
        const Millis left = std::clamp(party.left.value_or(ttl), Millis{0}, ttl);
        delays[party.id] = {after(Clock::now(), left), util::watch_life(record.life)};
      }
      const Delay& delay = delays[party.id];
      // Of one whose session is there, ours has ended, and we have not heard of it yet.
      if (!party.present &&
          (record.owner.ended || delay.has_ended() || delay.until <= Clock::now())) {
        over.push_back(party.id);
        continue;
      }
      if (!party.present && party.left.value_or(kNobodySaid) > ttl) {
        changes += statements_.delay(party.id, ttl);
      }
      if (delay.watch.ends) ends = delay.watch.ends.get();
      if (!party.present) until = std::min(until, delay.until);
      running.push_back(std::move(party));
    }
    if (!over.empty()) changes += statements_.forget_ended(over) + "; ";
    if (!changes.empty()) {
      if (auto said = ask(changes + "DO 0"); !said) return said.error();
    }
    if (running.empty()) return {};
    tell(state, running);
    if (time_is_up()) return busy();
    if (auto ok = pause_until(until, lease, ends); !ok) return ok;
    if (Clock::now() >= renewal || util::wait_readable(lease.event_fd(), Deadline{})) {
      renewal = after(Clock::now(), request_.ttl / 3);
      const auto renewed = lease.renew(patience(), wait_.cancel);
      if (!renewed && (renewed.error().code == Errc::lost || Clock::now() >= lease.valid_until())) {
        connection_->close();  // all begins anew
        return Error{Errc::unreachable, renewed.error().message};
      }
    }
    const auto looked = ask(statements_.look(false));
    if (!looked) return looked.error();
    state = state_of(looked.value().answers.back());
  }
}

}  // namespace dlock::mysql
