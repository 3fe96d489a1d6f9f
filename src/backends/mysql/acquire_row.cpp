// The tries of mysql-row.  The row lock is taken on the connection that keeps it; then, on another
// one, it is noted who has it, with the number of the grant: what the transaction that holds the
// lock writes would be undone if the server crashed, and the number given twice.
#include <numeric>
#include <utility>
#include <vector>

#include "backends/mysql/acquisition.hpp"
#include "backends/mysql/errors.hpp"

namespace dlock::mysql {

// Whether this server can do it at all, which rows there are, and who is in the way.
Result<Reply> Acquisition::survey() {
  for (bool created = false;;) {
    auto reply = ask(statements_.survey());
    if (!reply) return reply.error();
    const auto& answers = reply.value().answers;
    if (answers.size() != 4) return Error{Errc::unreachable, place_->shown + ": makes no sense"};
    if (number_in(answers[0]) != 1) {
      if (auto ok = look_at_tables(); !ok) return ok.error();
      continue;
    }
    if (!answers[1].rows.empty() && answers[1].rows[0].at(1) == "ON") {
      return Error{Errc::unsupported,
                   place_->shown +
                       ": is a Galera cluster (wsrep_on), where a row lock is known to "
                       "one server only; use mysql-version"};
    }
    std::vector<unsigned> missing(1U + (request_.mode == Mode::slots ? request_.slots : 1U));
    std::iota(missing.begin(), missing.end(), 0U);
    for (const Row& row : answers[2].rows) {
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

// 0: none is free.  The server gives up a wait after a minute, since it does not notice before that
// nobody waits any more; then all is looked at again.
Result<unsigned> Acquisition::lock_row(bool wait) {
  const Reply reply = connection_->ask(statements_.lock_row(request_, connection_->mariadb(), wait),
                                       wait ? wait_.until : patience(), wait_.cancel);
  if (!reply.ok() && (connection_->broken() || !is_passing(reply.code))) {
    return explain(reply, *place_);
  }
  const auto slot = reply.ok() ? static_cast<unsigned>(number_in(reply.answers.back())) : 0;
  if (slot == 0) {
    if (auto undone = ask(statements_.unlock_row()); !undone) return undone.error();
  }
  return slot;
}

Result<Acquisition::Tried> Acquisition::attempt_row() {
  const auto surveyed = survey();
  if (!surveyed) return surveyed.error();
  State state = state_of(surveyed.value().answers.back());
  const Decision decision = state.decide(request_, own_);
  const bool wait = decision.kind == Decision::Kind::held && own_ != 0;
  if (!wait && decision.kind != Decision::Kind::take && decision.kind != Decision::Kind::full) {
    return Tried{nullptr, std::move(state)};
  }
  if (wait) tell(state);
  const Deadline asked = Clock::now();
  const auto slot = lock_row(wait);
  if (!slot) return slot.error();
  if (slot.value() == 0) return Tried{nullptr, std::move(state)};
  return take_row(slot.value(), asked);
}

Result<Acquisition::Tried> Acquisition::take_row(unsigned slot, Deadline asked) {
  auto other = own_ == 0 ? Connection::open(place_, patience(), wait_.cancel) : connect_again();
  if (!other) return other.error();
  std::swap(connection_, *other);  // connection_ is who is asked
  auto reply = ask(statements_.note_holder(request_, own_, slot));
  std::swap(connection_, *other);
  if (!reply) {
    if ((*other)->broken()) noting_ = (*other)->id();
    connection_->close();  // whatever was noted: without the row lock it means nothing
    return reply.error();
  }
  const auto& answers = reply.value().answers;
  const Outcome out = outcome(answers.at(answers.size() - 2));
  if (!out.fit) return unfit(*place_);
  Tried tried{nullptr, state_of(answers.back())};
  if (out.won == 0) {
    if (auto undone = ask(statements_.unlock_row()); !undone) return undone.error();
    return tried;
  }
  if (own_ != 0) {  // the row lock may have been waited for: the ttl is counted from here
    asked = Clock::now();
    auto said = ask(drop_bell(waiter_bell(request_.owner.id)) + "DO 0");
    if (!said) return said.error();
  }
  tried.lease = lease(out.won, out.fence, asked);
  return tried;
}

}  // namespace dlock::mysql
