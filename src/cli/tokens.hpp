// Finds the lock that a lock id of dlock acquire means.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

struct Claim {
  std::string key;
  std::string token;
};

/// The keys of the command line, each with its lock id: from --token-file, or from the environment
/// that acquire --export has set.  Throws Refusal.
std::vector<Claim> take_claims(const Settings& settings, const Command& command);

struct Claimed {
  LockInfo lock;
  LockInfo::Holder holder;
};

/// The holder with the lock id of the claim, if dlock acquire has acquired the lock.  Errc::lost if
/// no holder has that lock id any more; Errc::busy if it is not a lock id of dlock acquire.  Both
/// messages name the present holder.
Result<Claimed> find_claimed(Backend& backend, const Claim& claim, Deadline deadline);

}  // namespace dlock::cli
