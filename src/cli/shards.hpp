// --shard: several databases in place of one.
#pragma once

#include <vector>

#include "core/settings.hpp"
#include "core/url.hpp"

namespace dlock::cli {

/// The URLs of the setting.  Refuses what is none.
std::vector<Url> shard_urls(const Setting& shards);

}  // namespace dlock::cli
