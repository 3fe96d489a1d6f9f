// Reading the registrations of a key.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"
#include "backends/file/registration.hpp"
#include "core/cancel.hpp"

namespace dlock::file {

struct Registered {
  std::string name;
  State state = State::trying;
  pid_t lock_pid = 0;
  bool of_this_namespace = true;  // else lock_pid means nothing here
  Record record;                  // of a holder or a waiter; without an id if it cannot be read
};

struct Registrations {
  std::vector<Registered> holders;
  std::vector<Registered> waiters;   // in the order of their arrival
  std::vector<pid_t> lock_pids;      // of all registrations, of every state
  bool of_other_namespaces = false;  // some of lock_pids mean nothing here
  unsigned waiting = 0;              // counted by name, so with waiters that were just killed
};

/// Which registrations are opened.
///   - holders: those with the name of a holder.  A waiter that is granted the lock at this moment
///     may be missing.
///   - one_holder: the same, up to the first holder of a shared or slots lock.
enum class Whom { one_holder, holders, all };

/// Opens a registration.  `name` becomes the present name of the file.  None, with errno set, on
/// failure.
Fd open_registration(const Fd& folder, std::string& name, int flags);

/// The registrations of living processes.  Removes those of dead ones, and the folder if it is
/// empty then.  Takes no lock that anybody waits for.
Result<Registrations> read_registrations(const Place& place, Whom whom);

/// Locks the folder: until the returned file is closed, no other process is granted a shared or a
/// slots lock.  Waits until `deadline`, but for two seconds at least, since each process has it
/// locked for microseconds only.  `for_pid`: as FlockWait::start().  Errc::unreachable if another
/// process does not go on.
Result<LockFile> lock_registrations(const Place& place, std::int64_t for_pid, Deadline deadline,
                                    Cancel cancel);

/// Errc::conflict if the lock is held shared or for slots with another claim than this one.  It
/// reads one holder: all holders have the same claim, since each was compared with another one.
Result<void> check_claim(const Place& place, std::string_view key, Claim claim);

}  // namespace dlock::file
