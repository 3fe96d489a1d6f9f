// Which of several databases a key belongs to.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock {

/// What makes a database the one that it is, as far as a URL can tell: backend, hosts and database,
/// `redis://h:6379/0`.  Not how to get in: user, password, TLS.  For placement and comparison, not
/// to be shown.
std::string shard_name(const BackendEntry& entry, const Url& url);

/// The index of the shard to which `key` belongs: of any set of names always the same name, in
/// whichever order they stand.  One name more takes its share from each of the others and moves no
/// other key.  `shards` must not be empty.
std::size_t shard_of(std::string_view key, std::span<const std::string> shards);

}  // namespace dlock
