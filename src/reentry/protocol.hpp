// Re-entry: a run inside a job that holds the lock already (the nested run) uses the lock of that
// job's run (the outer run).
//
// The supervisor of the outer run listens on a local socket.  The command inherits its address in
// DLOCK_SUPERVISORS, together with the owner ids of its locks.  A nested run that finds there the
// owner id that the backend shows asks at that address whether the lock is held under it.  The
// connection stays open while the nested run counts on the lock: its end tells the nested run that
// the lock is lost, and the outer run that the nested run has ended.
//
// Who is served.  Neither pids nor names nor a token in the environment prove that a run is below
//   the holder: two containers may have the same pids and host name, at(1) and tmux(1) copy the
//   environment.  The kernel says which process has connected (SO_PEERCRED); the outer run looks
//   for itself among the ancestors of that process.  If /proc does not show them, the outer run
//   says so, and the nested run fails: if it waited for the lock, it might wait for its own job.
// Who is believed.  The addresses of a run that has ended stay in environments, and another user
//   may listen there.  So an address is asked only for a lock with one of the owner ids that stand
//   with it; and the nested run accepts an outer run of its own user, of root, or above itself.
// Loss.  A nested run is a holder like any other: it renews its lease by asking again, and ends its
//   job before the lease is over if it gets no answer.  The end of the connection alone would not
//   do: once the command of the outer run has ended, no launcher watches over its supervisor, and a
//   nested run that the command has left would not hear of it if that supervisor is stopped.  An
//   answer names the time that is left, and the nested run counts it from the instant of the
//   question, which comes back with the answer: a late answer is not taken for a new one.
// Without a socket.  A service manager may forbid local sockets (RestrictAddressFamilies).  A run
//   that cannot listen leaves its owner id instead of an address.  A nested run that finds this id
//   on the lock fails.
// End of the nested run.  Its launcher has a copy of the connection, as of all descriptors that
//   keep a lock: if its supervisor is killed, it has ended when its launcher has killed the job.
// Death of the outer run.  Where the kernel keeps the lock, the nested run has copies of the
//   descriptors that keep it, so it is kept until the nested run has ended.  Elsewhere its ttl runs
//   on.
#pragma once

#include <array>
#include <string_view>

#include "core/key.hpp"
#include "util/clock.hpp"

namespace dlock::reentry {

/// A list of addresses and owner ids, the nearest run last.
constexpr const char* kVariable = "DLOCK_SUPERVISORS";
constexpr char kSeparator = ',';  // no owner id has one
/// Before an owner id: of the run whose address stands before it, or of one that has none.
constexpr char kHeldThere = '+';
constexpr char kCannotListen = '-';

/// Asks for one lock.  It names the key, too: an owner id that somebody has copied to another lock
/// is not enough.
struct Question {
  std::array<char, 64> owner_id{};
  Deadline::rep asked_at = 0;  // the nested run's clock
  std::array<char, kMaxKeyLength + 1> key{};

  Question() = default;
  Question(std::string_view its_owner_id, std::string_view its_key) {
    its_owner_id.copy(owner_id.data(), owner_id.size());
    its_key.copy(key.data(), kMaxKeyLength);
  }
};

/// Tells whether the outer run holds it, and for how long.
struct Answer {
  static constexpr Millis::rep kNotHeld = 0;
  static constexpr Millis::rep kForEver = -1;
  static constexpr Millis::rep kUnproved = -2;  // it cannot be seen whether the nested run is below
  Deadline::rep asked_at = 0;                   // that of the question
  Millis::rep left_ms = kNotHeld;
  Millis::rep ttl_ms = 0;
};

}  // namespace dlock::reentry
