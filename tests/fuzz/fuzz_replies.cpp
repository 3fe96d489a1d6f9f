// What a Redis server may answer: read, described, and taken for what is known of a lock.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/redis/describe.hpp"
#include "backends/redis/look.hpp"
#include "backends/redis/merge.hpp"
#include "backends/redis/reader.hpp"

using namespace dlock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The first byte says in what pieces the rest comes.
  const std::size_t piece = data[0] == 0 ? size : data[0];
  redis::Reader reader;
  std::vector<redis::Reply> replies;
  for (std::size_t at = 1; at < size; at += piece) {
    reader.feed(reinterpret_cast<const char*>(data) + at, std::min(piece, size - at));
    for (;;) {
      redis::Reply reply;
      const auto got = reader.next(reply);
      if (got == redis::Reader::Got::nothing) break;
      if (got == redis::Reader::Got::garbage) return 0;
      replies.push_back(std::move(reply));
    }
  }
  (void)redis::describe(replies);
  std::vector<Result<LockInfo>> looks;
  std::vector<std::string> servers;
  for (const redis::Reply& reply : replies) {
    if (reply.is_error()) (void)redis::server_error("redis", reply.text);
    if (!reply.is("*$:$*")) continue;
    looks.emplace_back(redis::lock_info("job", reply));
    servers.push_back("redis " + std::to_string(servers.size()));
  }
  if (!looks.empty()) (void)redis::merge_looks("job", looks, servers);
  return 0;
}
