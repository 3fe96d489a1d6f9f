// Rows.     A holder's row is its lease, a waiter's row is what `dlock show` prints.  Each client
//           has a session lock of its own, the name, from before its row can be seen until after
//           its row has gone.  So others can wait for the end of a holder.
// Gate.     One more session lock for each key.  The owner of the gate waits for the holder's name;
//           all others wait for the gate.  So a release wakes one client, and an arrival costs the
//           same with 10 and with 200 waiting.  The server keeps the order of those who wait.
// Safety.   The gate decides nothing.  A client takes the lock by a transaction that compares and
//           sets the version of the key, and deletes each lease that is over if it is the one that
//           the client has seen.  On the version alone, a lease could be taken over that was
//           renewed after the look.  Only a take raises the version: all other changes make a lock
//           freer.  Sessions are READ COMMITTED, so that a take which has waited for another one
//           compares with what that has written.
// Doubt.    A client whose connection was lost takes its name again before it looks.  As the name
//           ends with the earlier session, no text of that session is carried out later.  If the
//           look finds that the lock was granted, a renewal confirms that.  If the name cannot be
//           had, the client ends the earlier session and begins anew, with another id.
// Stopped.  A client that is stopped between two texts keeps the gate until the server ends its
//           session, after three seconds of silence.
// Without   session locks, as on a cluster of several primaries, every client has the gate and each
//           name, waiters look each second, and the rows of waiters are the queue.  The take is as
//           safe: of two, the cluster commits one.  Only doubt is worse there: an earlier session
//           can take the lock after the client has left, and keep it for a ttl.
#include "backends/sql/acquire.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/sql/acquisition.hpp"
#include "backends/sql/lease.hpp"
#include "backends/sql/row_lease.hpp"
#include "util/jitter.hpp"
#include "util/random_id.hpp"

namespace dlock::sql {
namespace {

constexpr unsigned kMostTries = 20;
constexpr Millis kForEarlierSession{2'000};
constexpr Millis kForPassingClient{1'000};

// One of eight acquires removes what nobody uses.
bool is_chosen_to_sweep() { return util::random_seed() % 8 == 0; }

}  // namespace

Acquisition::Acquisition(std::shared_ptr<const Database> database, const Request& request,
                         const Wait& wait, Patience& patience)
    : database_(std::move(database)),
      statements_(*database_, request.key),
      wait_(wait),
      patience_(patience),
      request_(request) {}

// Says a text again where that is all there is to do.
Result<Reply> Acquisition::ask(const std::string& text) {
  bool has_made_tables = false;
  for (unsigned tries = 1;; ++tries) {
    Reply reply = session_->ask(text, patience_.call_until(), wait_.cancel);
    if (reply.ok()) return reply;
    if (session_->broken()) return *reply.error;
    if (reply.trouble == Trouble::no_table && !std::exchange(has_made_tables, true)) {
      auto made = database_->create_tables(*session_, patience_.call_until(), wait_.cancel);
      if (!made) return made.error();
    } else if (reply.trouble != Trouble::passing || tries == kMostTries) {
      return *reply.error;
    } else if (auto ok = rest(util::jitter(Millis{1 + 2 * tries})); !ok) {
      return ok.error();
    }
  }
}

void Acquisition::begin_anew() {
  earlier_ids_.push_back(std::exchange(request_.owner.id, util::random_id()));
  has_row_ = false;
}

// The answers to look(), wait_for_gate() and watch().
Look Acquisition::read(const Reply& reply) {
  has_gate_ = has_gate_ || gained(reply).has_gate;
  Look look = look_of(reply.answers);
  if (database_->is_without_session_locks()) {
    heartbeats_.judge(look.rows, Clock::now(), patience_.tries_once());
  }
  if (look.own != LockRow::Role::waiter) has_row_ = false;
  return look;
}

// Removes what the first two answers have found that nobody uses.
Result<void> Acquisition::sweep(const Reply& found) {
  std::array<std::vector<std::string>, 2> unused;
  for (std::size_t i = 0; i < std::min(unused.size(), found.answers.size()); ++i) {
    for (const Row& row : found.answers[i].rows) unused.at(i).push_back(text(row, 0));
  }
  const auto& [owners, keys] = unused;
  if (!owners.empty()) {
    if (auto done = ask(statements_.sweep_rows(owners)); !done) return done.error();
  }
  if (!keys.empty()) {
    if (auto done = ask(statements_.forget_keys(keys)); !done) return done.error();
  }
  return {};
}

bool Acquisition::is_doubtful(const std::string& id) const {
  return std::find(doubtful_ids_.begin(), doubtful_ids_.end(), id) != doubtful_ids_.end();
}

Result<Look> Acquisition::next_look() {
  if (look_) return *std::exchange(look_, std::nullopt);
  const bool is_new = !session_;
  if (is_new) {
    auto opened = database_->open(patience_.call_until(), wait_.cancel);
    if (!opened) return opened.error();
    session_ = std::move(*opened);
  }
  bool sweeps = is_new && !has_row_ && is_chosen_to_sweep();  // its own row seems unused
  for (unsigned tries = 1; tries <= kMostTries; ++tries) {
    const std::string id = request_.owner.id;
    const bool has_earlier_session = is_new && (has_row_ || is_doubtful(id));
    const auto reply =
        ask((sweeps ? statements_.sweep() : "") +
            statements_.look(id, has_earlier_session ? kForEarlierSession : Millis{0},
                             {named_ == id, has_gate_}));
    if (!reply) return reply.error();
    if (std::exchange(sweeps, false)) {
      if (auto ok = sweep(reply.value()); !ok) return ok.error();
    }
    Look look = read(reply.value());
    const bool has_name = gained(reply.value()).has_name;
    if (has_name) {
      named_ = id;
      std::erase(doubtful_ids_, id);
    }
    if (has_name && look.own != LockRow::Role::broken) return look;
    if (!has_name) end_sessions_of(id, Which::all, patience_.call_until());
    begin_anew();
  }
  return Error{Errc::unreachable, session_->server() + ": it gives this client no session lock"};
}

// The lock was granted by a text whose answer was lost.  Null: that is over.
Result<std::unique_ptr<Lease>> Acquisition::confirm(const Look& look) {
  const LockRow* const own = find_row(look.rows, request_.owner.id);
  if (own == nullptr) {
    begin_anew();
    return nullptr;
  }
  const Deadline asked = Clock::now() - (request_.ttl - own->left.value_or(request_.ttl));
  auto lease =
      make_lease(database_, std::move(session_), {request_, own->fence, own->slot, asked, false});
  has_gate_ = false;
  if (database_->locks_rows()) return complete(std::move(lease));  // which renews it
  doubtful_ids_.push_back(request_.owner.id);
  const auto renewed = lease->renew(patience_.call_until(), wait_.cancel);
  if (!renewed && renewed.error().code != Errc::lost) return renewed.error();
  doubtful_ids_.pop_back();
  if (renewed) return lease;
  begin_anew();
  return nullptr;
}

// Null: another client was granted the lock, or a lease was renewed.
Result<std::unique_ptr<Lease>> Acquisition::take(const Look& look, const Decision& decision) {
  const Deadline asked = Clock::now();
  doubtful_ids_.push_back(request_.owner.id);
  const Reply reply = session_->ask(statements_.take(request_, look, decision, has_gate_),
                                    patience_.call_until(), wait_.cancel);
  if (!reply.ok()) {
    if (session_->broken() || reply.trouble != Trouble::passing) return *reply.error;
    doubtful_ids_.pop_back();
    return nullptr;
  }
  const Taken result = taken(reply);
  if (!result.is_primary) return no_primary(session_->server());
  doubtful_ids_.pop_back();
  if (!result.is_won) return nullptr;
  doubtful_ids_.clear();  // no other text can take the lock at this version
  has_row_ = false;
  if (!earlier_ids_.empty()) {
    (void)session_->ask(statements_.leave(earlier_ids_), patience_.call_until(), wait_.cancel);
  }
  return complete(
      make_lease(database_, std::move(session_), {request_, result.fence, decision.slot, asked}));
}

// A lease without its row is like one whose grant was not heard.
Result<std::unique_ptr<Lease>> Acquisition::complete(std::unique_ptr<Lease> lease) {
  has_gate_ = false;
  if (!database_->locks_rows()) return lease;
  patience_.answered();
  patience_.recovered();
  auto locked = lock_row(database_, std::move(lease), request_, wait_, patience_);
  if (!locked) {
    doubtful_ids_.push_back(request_.owner.id);  // its sessions are to end
    begin_anew();
  }
  return locked;
}

// A request that does not wait: another client may have the gate for the moment in which it takes
// the lock.  False: one that waits is before this request.
Result<bool> Acquisition::try_gate_once_more() {
  const auto peeked = ask(statements_.peek());
  if (!peeked) return peeked.error();
  const Look all = look_of(peeked.value().answers);
  const Decision decision = decide(all, request_.claim(), request_.owner.id);
  if (decision.kind != Turn::Kind::granted) return false;
  const auto reply = ask(statements_.wait_for_gate(request_.owner.id, kForPassingClient));
  if (!reply) return reply.error();
  look_ = read(reply.value());
  return has_gate_;
}

void Acquisition::remember(const Look& look, const Decision& decision) {
  last_.info = lock_info(request_.key, look.rows);
  last_.seen.clear();
  for (const LockInfo::Holder& holder : last_.info.holders) last_.seen += holder.owner.id + '/';
  const auto& waiters = *last_.info.waiters;
  const auto own = std::find_if(waiters.begin(), waiters.end(), [&](const LockInfo::Waiter& it) {
    return it.owner.id == request_.owner.id;
  });
  if (own != waiters.end()) {
    last_.info.place = static_cast<unsigned>(own - waiters.begin()) + 1;
  } else if (has_row_ && has_gate_) {
    last_.info.place = 1;
  }
  if (last_.info.place) last_.seen += std::to_string(*last_.info.place);
  last_.waits_for_any = decision.kind == Turn::Kind::wait_for_any;
  if (decision.first == nullptr) return;
  last_.first = decision.first->owner;
  last_.first_left = decision.first->left.value_or(Millis::max());
  if (decision.first->has_session) last_.nameless.clear();
}

// Of rows that are in the way of others for nothing: of the earlier ids, and of waiters that are
// there no more.  "": there are none.
std::string Acquisition::removal(std::span<const LockRow> rows) const {
  std::vector<std::string> earlier;
  std::vector<std::string> dead;
  for (const LockRow& row : rows) {
    const bool is_earlier =
        std::find(earlier_ids_.begin(), earlier_ids_.end(), row.owner) != earlier_ids_.end();
    const bool is_dead = row.role == LockRow::Role::waiter && !row.is_alive();
    if (row.owner == request_.owner.id) continue;
    if (is_earlier) earlier.push_back(row.owner);
    if (is_dead && !is_earlier) dead.push_back(row.owner);
  }
  if (!earlier.empty()) return statements_.leave(earlier);
  return dead.empty() ? "" : statements_.sweep_rows(dead);
}

// The caller is told the place in the queue with the rest.
Result<AcquireSteps::Attempt> Acquisition::blocked() {
  if (!has_row_ && !patience_.tries_once() && Clock::now() < wait_.until) {
    if (auto ok = join(); !ok) return ok.error();
  }
  return Attempt{nullptr, last_.seen};
}

Result<AcquireSteps::Attempt> Acquisition::attempt() {
  if (std::exchange(last_.is_news, false)) return Attempt{nullptr, last_.seen};
  for (unsigned tries = 1;; ++tries) {
    auto look = next_look();
    if (!look) return look.error();
    if (!look->is_writable) return no_primary(session_->server());
    if (look->own == LockRow::Role::holder) {
      auto lease = confirm(*look);
      if (!lease) return lease.error();
      if (*lease) return Attempt{std::move(*lease), ""};
      continue;
    }
    if (const std::string text = removal(look->rows); !text.empty()) {
      if (auto removed = ask(text); !removed) return removed.error();
      continue;
    }
    if (!look->version) {
      auto ok = database_->check_tables(Database::Part::locks, *session_, patience_.call_until(),
                                        wait_.cancel);
      if (!ok) return ok.error();
      // Not cancelled: the row would come after the doctor has cleaned up.
      const Reply made =
          session_->insist(statements_.create_key(), patience_.call_until(), Cancel());
      if (!made.ok()) return *made.error;
      continue;
    }
    const Decision decision = decide(*look, request_.claim(), request_.owner.id);
    remember(*look, decision);
    if (decision.kind == Turn::Kind::refused) {
      return mode_conflict(request_.key, request_.claim(), decision.first->claim);
    }
    const bool may_pass =
        std::exchange(beside_.may_pass_gate, false) && look->version == beside_.free_version;
    if (decision.kind != Turn::Kind::granted || tries > kMostTries) return blocked();
    if (has_gate_ && look->has_waiters_before) {  // they have gone: the gate keeps the order
      if (auto swept = ask(statements_.sweep_key(request_.owner.id)); !swept) return swept.error();
    }
    if (has_gate_ || may_pass) {
      auto lease = take(*look, decision);
      if (!lease) return lease.error();
      if (*lease) return Attempt{std::move(*lease), ""};
    } else {
      if (!patience_.tries_once()) return blocked();
      const auto has_gate = try_gate_once_more();
      if (!has_gate) return has_gate.error();
      if (!has_gate.value()) return blocked();
    }
  }
}

void Acquisition::recover(const Error&) {
  session_.reset();
  named_.clear();
  look_.reset();
  last_.is_news = false;
  has_gate_ = false;
}

// A server goes on to wait, in the way of others, although the client has gone.  A client that has
// waited for a name has it for a moment: so the name is waited for, too, before the session that
// has it is ended.
void Acquisition::end_sessions_of(const std::string& id, Which which, Deadline deadline) {
  const Reply found = session_->insist(statements_.break_grant(id, ""), deadline, Cancel());
  if (!found.ok()) return;
  const Broken its = sql::broken(found);
  for (const std::string& session : {which == Which::all ? its.session : "", its.row_session}) {
    if (session.empty()) continue;
    (void)session_->insist(statements_.end_session(id, session), deadline, Cancel());
  }
}

// A session whose text may take the lock must have ended before its row is removed.
Result<void> Acquisition::remove_rows(Deadline deadline) {
  if (!session_ || session_->broken()) {
    auto opened = database_->open(deadline, Cancel());
    if (!opened) return opened.error();
    session_ = std::move(*opened);
  }
  std::vector<std::string> ids = earlier_ids_;
  ids.push_back(request_.owner.id);
  for (const std::string& id : ids) {
    if (!is_doubtful(id)) continue;
    bool has_name = false;
    for (const Which which : {Which::of_row, Which::all}) {
      if (has_name) break;
      end_sessions_of(id, which, deadline);
      const Reply looked =
          session_->insist(statements_.look(id, kForPassingClient), deadline, Cancel());
      if (!looked.ok()) return *looked.error;
      has_name = gained(looked).has_name;
    }
    if (!has_name) {
      return Error{Errc::unreachable,
                   session_->server() + ": an earlier connection of this dlock has not ended yet"};
    }
  }
  const Reply left = session_->insist(statements_.leave(ids), deadline, Cancel());
  if (left.ok() || left.trouble == Trouble::no_table) return {};
  return *left.error;
}

Result<void> Acquisition::leave() {
  if (!has_row_ && doubtful_ids_.empty() && earlier_ids_.empty()) return {};
  if (session_ && session_->under_way()) session_.reset();
  return try_in_farewell([&](Deadline deadline) { return remove_rows(deadline); },
                         after(Clock::now(), database_->connect_timeout()), Cancel());
}

Result<std::unique_ptr<Lease>> acquire(const std::shared_ptr<const Database>& database,
                                       const Request& request, const Wait& wait) {
  Patience patience(wait, database->connect_timeout(), request.key);
  Acquisition steps(database, request, wait, patience);
  return acquire_loop(steps, request, wait, patience);
}

}  // namespace dlock::sql
