// The scripts of lua/next/: those of the protocol to which redis and redlock move.
#pragma once

#include "backends/redis/scripts.hpp"

namespace dlock::redis::next {

extern const Script kAsk;
extern const Script kBreak;
extern const Script kComplete;
extern const Script kLeave;
extern const Script kLook;
extern const Script kRenew;
extern const Script kVote;

}  // namespace dlock::redis::next
