// Who is before whom: whose turn it is, what the others wait for, and which slot is free.
//
// Pure: no clock, no network.  A backend lists the requests for one lock that are alive, in their
// order, and asks for the turn of its own.  Where the service keeps no order of waiters (a gate
// lets one of them through at a time), the list is that of the holders, with the own request behind
// them.
//
// The rule is that of ZooKeeper's recipes and of Apache Curator: a request is granted when nothing
// before it excludes it, so a reader waits behind a writer that waits.
#pragma once

#include <cstddef>
#include <span>

#include "core/mode.hpp"
#include "util/clock.hpp"

namespace dlock {

/// A request for a lock that is held or waited for.
struct Queued {
  Claim claim;
  Deadline ends = kNever;  // when it expires unless it is renewed
};

/// How many at the beginning of the queue hold the lock.  They all have the claim of the first.
std::size_t count_holders(std::span<const Queued> queue);

/// What a request has to do.
struct Turn {
  enum class Kind {
    granted,       // it holds the lock
    wait_for_one,  // until the request number `index` has gone or, in slots mode, was granted
    wait_for_any,  // slots mode: until one of the holders has gone
    refused,       // its claim cannot be mixed with that of the holders: see mode_conflict()
  };
  Kind kind = Kind::granted;
  std::size_t index = 0;   // wait_for_one: smaller than its own
  Deadline look = kNever;  // when what it waits for expires: time to look again
};

/// The turn of the request number `own`.  A waiter waits for one event only: the first one without
/// which it cannot be its turn.  So a release wakes the next holder and no other waiter.
///
/// An answer "granted" stays true for as long as the request is in the queue, because others can
/// only go away or queue behind it.  The other answers are true of this list: if it has changed
/// before the backend could begin to wait, the backend asks again.
Turn turn_of(std::span<const Queued> queue, std::size_t own);

/// The lowest number of 1..slots that is not among `taken`; 0 if there is none.  `leave`: as many
/// lower free numbers are left to others that are about to take theirs, except that the last free
/// number is never left.
unsigned free_slot(std::span<const unsigned> taken, unsigned slots, std::size_t leave = 0);

}  // namespace dlock
