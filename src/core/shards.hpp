// Which of several databases a key belongs to.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dlock {

/// The index of the shard to which `key` belongs: of any set of names (BackendEntry::place) always
/// the same name, in whichever order they stand.  One name more takes its share from each of the
/// others and moves no other key.  `shards` must not be empty.
std::size_t shard_of(std::string_view key, std::span<const std::string> shards);

}  // namespace dlock
