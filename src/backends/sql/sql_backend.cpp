// Each lock that is held or waited for has a session of its own.  All other functions share one,
// which is opened when it is first needed.
#include "backends/sql/sql_backend.hpp"

#include <algorithm>
#include <utility>

#include "backends/sql/acquire.hpp"
#include "backends/sql/conversation.hpp"
#include "backends/sql/heartbeats.hpp"
#include "backends/sql/lease.hpp"
#include "backends/sql/sql_records.hpp"
#include "backends/sql/statements.hpp"
#include "util/log.hpp"

namespace dlock::sql {
namespace {

class SqlBackend final : public Backend {
 public:
  explicit SqlBackend(std::shared_ptr<const Database> database)
      : database_(std::move(database)),
        conversation_(database_),
        records_(make_records(conversation_)) {}

  std::string location() const override { return database_->location(); }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    return sql::acquire(database_, request, wait);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override;
  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override;
  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline deadline) override;
  Result<std::unique_ptr<Lease>> resume(const LockInfo& lock, const LockInfo::Holder& holder,
                                        Millis ttl, Deadline deadline) override;

  Records* records() override { return records_.get(); }

 private:
  template <class MakeText>
  Result<std::vector<LockRow>> rows(MakeText make_text, Deadline deadline);

  const std::shared_ptr<const Database> database_;
  Conversation conversation_;
  const std::unique_ptr<Records> records_;
};

// Where there are no tables there are no locks.
template <class MakeText>
Result<std::vector<LockRow>> SqlBackend::rows(MakeText make_text, Deadline deadline) {
  if (auto ok = conversation_.connect(deadline); !ok) return ok.error();
  const auto reply = conversation_.ask(make_text(), deadline);
  if (!reply) return reply.error();
  if (!reply.value().ok()) return std::vector<LockRow>();
  std::vector<LockRow> rows = lock_rows_of(last_answer(reply.value()));
  if (database_->is_without_session_locks()) Heartbeats().judge(rows, Clock::now());
  return rows;
}

Result<LockInfo> SqlBackend::inspect(std::string_view key, Deadline deadline) {
  const auto found = rows([&] { return Statements(*database_, key).peek(); }, deadline);
  if (!found) return found.error();
  return lock_info(std::string(key), found.value());
}

Result<std::vector<LockInfo>> SqlBackend::list(std::string_view prefix, Deadline deadline) {
  const auto found = rows([&] { return sql::list(*database_, prefix); }, deadline);
  if (!found) return found.error();
  std::vector<LockInfo> locks;
  const std::span<const LockRow> all = found.value();
  for (auto from = all.begin(); from != all.end();) {
    const auto to =
        std::find_if(from, all.end(), [&](const LockRow& row) { return row.key != from->key; });
    LockInfo info = lock_info(from->key, {from, to});
    if (!info.holders.empty() || !info.waiters->empty()) locks.push_back(std::move(info));
    from = to;
  }
  return locks;
}

// The row says why before the holder can ask, which it does when its session ends.
Result<bool> SqlBackend::force_release(std::string_view key, std::string_view owner_id,
                                       const Reason& reason, Deadline deadline) {
  if (auto ok = conversation_.connect(deadline); !ok) return ok.error();
  const Statements statements(*database_, key);
  const auto reply =
      conversation_.ask(statements.break_grant(owner_id, format_reason(reason)), deadline);
  if (!reply) return reply.error();
  if (!reply.value().ok()) return false;
  const Broken result = broken(reply.value());
  if (!result.is_primary) {
    return no_primary(database_->shown());
  }
  if (!result.is_done) return false;
  for (const std::string& session : {result.session, result.row_session}) {
    if (session.empty()) continue;
    const auto ended = conversation_.ask(statements.end_session(owner_id, session), deadline);
    if (ended || ended.error().code != Errc::denied) continue;
    util::log(util::Level::warning,
              database_->shown() +
                  ": may not end the holder's connection, which is another user's: it will notice "
                  "at its next renewal");
    break;
  }
  return true;
}

// If the row has gone, the lease says so when it is used, and says why.  It takes over the session:
// a process that resumes a lease has nothing else to ask.
Result<std::unique_ptr<Lease>> SqlBackend::resume(const LockInfo& lock,
                                                  const LockInfo::Holder& holder, Millis ttl,
                                                  Deadline deadline) {
  if (database_->locks_rows()) return Backend::resume(lock, holder, ttl, deadline);
  Grant grant{.request = {lock.key, lock.mode, lock.slots, holder.ttl.value_or(ttl), holder.owner},
              .fence = holder.fence.value_or(0),
              .slot = holder.slot.value_or(0),
              .has_name = false,
              .resumed_for = ttl};
  return make_lease(database_, conversation_.take_session(), std::move(grant));
}

}  // namespace

std::unique_ptr<Backend> make_backend(std::shared_ptr<const Database> database) {
  return std::make_unique<SqlBackend>(std::move(database));
}

}  // namespace dlock::sql
