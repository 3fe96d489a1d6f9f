// --shard: several databases in place of one.
#pragma once

#include <span>
#include <vector>

#include "core/backend.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

/// The URLs of the setting.  Refuses what is none; then no message shows a part of one that may
/// hold a password.
std::vector<Url> shard_urls(const Setting& shards);

}  // namespace dlock::cli
