// The steps of one acquire().  acquire.cpp has the argument why they are right.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/sql/database.hpp"
#include "backends/sql/heartbeats.hpp"
#include "backends/sql/lock_rows.hpp"
#include "backends/sql/statements.hpp"
#include "core/acquire_loop.hpp"
#include "core/backend.hpp"
#include "core/patience.hpp"

namespace dlock::sql {

class Acquisition final : public AcquireSteps {
 public:
  Acquisition(std::shared_ptr<const Database> database, const Request& request, const Wait& wait,
              Patience& patience);

  Result<Attempt> attempt() override;
  Result<LockInfo> describe() override { return last_.info; }
  Result<bool> wait(Deadline until) override;
  void recover(const Error& why) override;
  Result<void> leave() override;

 private:
  // acquire.cpp
  Result<Look> next_look();
  Result<std::unique_ptr<Lease>> confirm(const Look& look);
  Result<std::unique_ptr<Lease>> take(const Look& look, const Decision& decision);
  Result<std::unique_ptr<Lease>> complete(std::unique_ptr<Lease> lease);
  Result<bool> try_gate_once_more();
  Result<Attempt> blocked();
  Result<Reply> ask(const std::string& text);
  Look read(const Reply& reply);
  Result<void> sweep(const Reply& found);
  void remember(const Look& look, const Decision& decision);
  void begin_anew();
  std::string removal(std::span<const LockRow> rows) const;
  bool is_doubtful(const std::string& id) const;
  enum class Which { of_row, all };
  void end_sessions_of(const std::string& id, Which which, Deadline deadline);
  Result<void> remove_rows(Deadline deadline);

  // acquire_waiting.cpp
  Result<void> join();
  Result<bool> look_each_second(Deadline until);
  Result<bool> woken_by(const Reply& reply);
  Result<bool> watch(Deadline until);
  Result<bool> wait_at_gate(Deadline until);
  Result<bool> look_beside();
  Result<void> rest(Millis time);

  const std::shared_ptr<const Database> database_;
  const Statements statements_;
  const Wait& wait_;
  Patience& patience_;
  Request request_;  // with the id of the last try

  // The session, and what it has.
  std::unique_ptr<Session> session_;
  std::string named_;  // the id whose name it has
  bool has_gate_ = false;
  bool has_row_ = false;                   // as a waiter
  std::vector<std::string> earlier_ids_;   // of rows that may be left
  std::vector<std::string> doubtful_ids_;  // to which the lock may have been granted
  std::optional<Look> look_;               // came with the last wait

  struct LastLook {
    LockInfo info;
    std::string seen;
    bool is_news = false;  // for the caller, without another look
    std::string first;     // the holder to wait for
    Millis first_left{0};  // of its lease
    bool waits_for_any = false;
    std::string nameless;  // a holder that has no session
  };
  LastLook last_;

  // Without session locks.
  Heartbeats heartbeats_;
  Deadline beat_at_ = kNever;  // when to say again that we wait

  // Of the looks over a second session.
  struct Beside {
    Deadline at = kNever;
    std::string free_version;  // the lock was free at this version; "": it was not
    bool may_pass_gate = false;
  };
  Beside beside_;
};

}  // namespace dlock::sql
