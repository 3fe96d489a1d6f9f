// Which grant of a lock is meant: the tokens that dlock acquire has printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

struct Claim {
  std::string key;
  std::string token;
};

/// The keys of the command line, each with its token: from --token-file, or what a grant has
/// put into the environment.  Throws Refusal.
std::vector<Claim> take_claims(const Settings& settings, const Command& command);

/// Whether a token can be one: 32 hexadecimal digits.
bool is_token(std::string_view text);

struct Claimed {
  LockInfo lock;
  LockInfo::Holder holder;
};

/// The holder that the claim is about, which dlock acquire has made one.  Errc::lost if nobody has
/// that token any more; Errc::busy if the token cannot be one of dlock acquire; both name who
/// holds the lock now.
Result<Claimed> find_claimed(Backend& backend, const Claim& claim, Deadline deadline);

}  // namespace dlock::cli
