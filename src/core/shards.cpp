// Rendezvous hashing (Thaler and Ravishankar, 1996): each shard has a weight for each key, and the
// heaviest has the key.  A weight depends on the key and that one shard alone, so another shard can
// win keys for itself, but cannot move one from a second to a third.
//
//   weight(key, shard) = mix(hash(key) ^ mix(hash(shard)))
//
// hash is FNV-1a of 64 bits, mix the finalizer of MurmurHash3 (fmix64), without which keys that
// differ in their last letter only would get weights that hardly differ.
//
// All this and the names can never change: two versions that place a key differently do not
// exclude each other.  tests/unit/shards_test.cpp has answers that were computed by other code.
#include "core/shards.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "util/hash.hpp"

namespace dlock {
namespace {

std::uint64_t mix(std::uint64_t h) {
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCD;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53;
  return h ^ (h >> 33);
}

}  // namespace

std::size_t shard_of(std::string_view key, std::span<const std::string> shards) {
  assert(!shards.empty());
  const std::uint64_t of_key = util::hash(key);
  const auto weight = [&](std::size_t i) {
    // The name itself decides between two that hash alike.
    return std::pair<std::uint64_t, std::string_view>(mix(of_key ^ mix(util::hash(shards[i]))),
                                                      shards[i]);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < shards.size(); ++i) {
    if (weight(i) > weight(best)) best = i;
  }
  return best;
}

}  // namespace dlock
