// What a run says of itself in its event log, if it has one: dlock-log(5).
#pragma once

#include <string>

#include "engine/held_locks.hpp"
#include "engine/outcome.hpp"
#include "engine/run_context.hpp"

namespace dlock {

/// Errc::invalid: it cannot be written.
Result<EventLog> open_event_log(const PairSpec& pair);

void log_waiting(const RunContext& context, const std::string& key, const LockInfo& info,
                 const std::optional<Owner>& holder);
void log_acquired(const RunContext& context, const HeldLocks& locks);
/// The command or the script is being ended: "lost", "max-hold", "killed", "signal 15".
void log_ending(const RunContext& context, int signal, const std::string& why);
/// The last event of this lock will be that it was lost.
void note_loss(const RunContext& context, const std::string& key);

/// Writes the last event of one lock, or of all and then no more, unless either process has done
/// so.
void log_end(const RunContext& context, const std::string& key, const Outcome& outcome);
void log_end(const RunContext& context, const Outcome& outcome);

}  // namespace dlock
