// Re-entry: a run inside a job that holds the lock already (the nested run) uses the lock of that
// job's run (the outer run).
//
// The supervisor of the outer run listens on a local socket.  The command inherits its address in
// DLOCK_SUPERVISORS, together with the owner ids of its locks.  If a nested run finds there the
// owner id that the backend shows, it asks at that address whether the lock is held under it.  The
// connection stays open while the nested run relies on the lock: its end tells the nested run that
// the lock is lost, and the outer run that the nested run has ended.
//
// Who is served.  Neither pids nor names nor a token in the environment prove that a run is below
//   the holder: two containers may have the same pids and host name; at(1) and tmux(1) copy the
//   environment.  The kernel says which process has connected (SO_PEERCRED), and the outer run
//   looks for itself among its ancestors.  If /proc does not show them, the outer run says so, and
//   the nested run fails: if it waited, it might wait for its own job.
// Who is believed.  The addresses of a run that has ended stay in environments, and another user
//   may listen there.  So a nested run asks an address only about a lock with one of the owner ids
//   listed with it, and believes only an outer run of its own user, of root, or above itself.
// Loss.  A nested run is a holder like any other: it renews its lease by asking again.  If it gets
//   no answer, it ends its job before the lease is over.  The end of the connection alone is not
//   enough: when the command of the outer run has ended, no launcher watches over its supervisor.
//   If that is stopped, a nested run that the command has left does not hear of a loss.  An answer
//   names the time that is left.  The nested run counts it from the instant of the question, which
//   comes back with it, so a late answer is not taken for a new one.
// Without a socket.  A service manager may forbid local sockets (RestrictAddressFamilies).  A run
//   then passes on its owner id, not an address.  A nested run that finds it on the lock fails.
// End of the nested run.  Its launcher has a copy of the connection, as of all descriptors that
//   keep a lock: if the supervisor is killed, it ends when the launcher has killed the job.
// Death of the outer run.  If the kernel keeps the lock, the nested run has copies of the
//   descriptors that keep it, so it is held until the nested run has ended.  Else it expires.
#pragma once

#include <array>
#include <string_view>

#include "core/key.hpp"
#include "util/clock.hpp"

namespace dlock::reentry {

/// A list of addresses and owner ids, the nearest run last.
constexpr const char* kVariable = "DLOCK_SUPERVISORS";
constexpr char kSeparator = ',';  // no owner id has one
/// Marks an owner id: of the run whose address precedes it, or of a run without an address.
constexpr char kHeldThere = '+';
constexpr char kCannotListen = '-';

/// Asks for one lock.  It names the key, too: the owner id may have been copied to another lock.
struct Question {
  std::array<char, 64> owner_id{};
  Deadline::rep asked_at = 0;  // by the nested run's clock
  std::array<char, kMaxKeyLength + 1> key{};

  Question() = default;
  Question(std::string_view its_owner_id, std::string_view its_key) {
    its_owner_id.copy(owner_id.data(), owner_id.size());
    its_key.copy(key.data(), kMaxKeyLength);
  }
};

/// Says whether the outer run holds the lock, and for how long.
struct Answer {
  static constexpr Millis::rep kNotHeld = 0;
  static constexpr Millis::rep kForEver = -1;
  static constexpr Millis::rep kUnproved = -2;  // /proc does not show whether it is below
  Deadline::rep asked_at = 0;                   // that of the question
  Millis::rep left_ms = kNotHeld;
  Millis::rep ttl_ms = 0;
};

}  // namespace dlock::reentry
