// The registrations of a key, as others find them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "backends/file/registration.hpp"

namespace dlock::file {

struct Registered {
  std::string name;
  State state = State::trying;
  pid_t lock_pid = 0;
  bool of_this_namespace = true;  // else that number means nothing here
  Record record;  // not of those who are State::trying; without an id if it cannot be read
};

struct Roster {
  std::vector<Registered> holders;
  std::vector<Registered> waiters;   // in the order in which they came
  std::vector<pid_t> lock_pids;      // of all, also of those who are neither
  bool of_other_namespaces = false;  // some of these numbers mean nothing here
  unsigned waiting = 0;              // by the names alone, so with those who were just killed
};

/// `holders` opens only what has their names: one that was granted the lock this moment may be
/// missing, and nobody who waits is looked at.
/// `one_holder` ends with the first holder of a shared or slots lock.
enum class Whom { one_holder, holders, all };

/// The file of a registration; `name` is changed to what it is called by now.  None, with errno
/// set.
Fd open_registration(const Fd& folder, std::string& name, int flags);

/// Those who live.  Registrations of the dead are removed, and so is the folder if nobody is left.
/// Takes no lock that anybody waits for.
Result<Roster> read_roster(const Place& place, Whom whom);

/// Errc::conflict if the lock is held shared or for slots, with another claim than this one.  One
/// holder is enough to know, since each holder was compared with an earlier one.
Result<void> check_claim(const Place& place, std::string_view key, Claim claim);

}  // namespace dlock::file
