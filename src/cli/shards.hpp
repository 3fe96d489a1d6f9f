// "shards" of a profile: several databases share the keys.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/settings.hpp"
#include "core/url.hpp"

namespace dlock::cli {

/// The URLs of the setting.  Refuses a text that is not a URL.
std::vector<Url> shard_urls(const Setting& shards);

/// "shard 2 of 3", for messages.  The text of a shard is never shown: the list may have been split
/// in the middle of a password. `i` counts from 0.
std::string shard_rank(std::size_t i, std::size_t count);

}  // namespace dlock::cli
