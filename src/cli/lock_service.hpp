// The lock service, for the commands that look at locks or break them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/columns.hpp"
#include "cli/lock_columns.hpp"
#include "cli/parse.hpp"
#include "cli/select_backend.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"
#include "engine/exit_status.hpp"

namespace dlock::cli {

/// What the command line says about where to look and how to show it.
class LockService {
 public:
  /// Refuses what cannot be as it is said.
  LockService(const Invocation& invocation, std::span<const BackendEntry> backends);

  const Settings& settings() const { return settings_; }
  const BackendEntry& entry() const { return *selection_.entry; }
  const Traits& traits() const { return selection_.entry->traits; }
  bool json() const { return json_; }
  /// "redis://h:6379/0 (profile prod)": for people.
  std::string place(const std::string& location) const;
  /// Of the file backend, that of this user, which no one has named.
  bool is_default_directory() const;
  /// " -b prod": what of the command line another command for the same locks needs, to be pasted.
  const std::string& same_backend() const { return selection_.target.options; }
  /// Of --output; empty without.
  const Columns<LockRow>& columns() const { return columns_; }
  /// Of --older-than.
  std::optional<Millis> older_than() const { return older_than_; }

  /// A connection; one made a while ago may be dead by now.
  Result<std::unique_ptr<Backend>> open() const;
  /// Until when one answer may take.
  Deadline patience() const;
  /// Says what is wrong; returns the exit status, which is `busy` for Errc::busy.
  int report(const Error& error, int busy = exit_status::kNo) const;

 private:
  Settings settings_;
  Selection selection_;
  bool json_ = false;
  Columns<LockRow> columns_;
  std::optional<Millis> older_than_;
};

/// The operand, as a key.
const std::string& key_operand(const Invocation& invocation);

/// Says why the answer is no, and returns that status.
int no(const std::string& why);

/// "root on ops-1 (pid 12)": for the holder whose lock this process takes.
std::string this_process_in_words();

/// Without what is not: no holder is left of a lock that is held by others only.
LockInfo with_older_holders(const LockInfo& lock, Millis age);

}  // namespace dlock::cli
