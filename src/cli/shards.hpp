// Several databases in place of one: "shards" of a profile.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/settings.hpp"
#include "core/url.hpp"

namespace dlock::cli {

/// The URLs of the setting.  Refuses what is none.
std::vector<Url> shard_urls(const Setting& shards);

/// "shard 2 of 3", for messages: where the list was split may be in the middle of a password, so
/// nothing of it is shown.  `i` counts from 0.
std::string shard_rank(std::size_t i, std::size_t count);

}  // namespace dlock::cli
