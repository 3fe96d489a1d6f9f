// A Redis server without a network: the commands that the scripts of src/backends/redis/lua use, on
// a clock that stands still until it is set.  redis_model_test.cpp compares it with a real one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/redis/reply.hpp"

namespace dlock::sim {

class RedisModel {
 public:
  /// As a script sees it, which tells a status from a text.
  struct Answer {
    redis::Reply reply;
    bool is_status = false;
  };

  /// Since 1970, of the server's clock.  It can go back.
  void set_clock(std::uint64_t us) { now_us_ = us; }

  Answer call(std::span<const std::string> words);

  /// A restart without its data.
  void forget() { keys_.clear(); }

  /// Clients that listen to this channel.
  void listen(const std::string& channel) { ++listeners_[channel]; }
  void stop_listening(const std::string& channel) { --listeners_[channel]; }
  /// What was heard since the last call: channel and message.
  std::vector<std::pair<std::string, std::string>> take_messages() {
    return std::exchange(messages_, {});
  }

  struct Holder {
    std::string id;
    std::int64_t ends = 0;  // ms
    bool operator==(const Holder&) const = default;
  };
  /// The value of a string, or the members of a sorted set whose scores are times to come.
  std::vector<Holder> holders(const std::string& lock);

  /// All keys that have not expired, one a line, with what is there and when it expires, in ms.
  std::string contents();

 private:
  using Words = std::span<const std::string>;
  using Member = std::pair<double, std::string>;  // of a sorted set, in its order
  using SortedSet = std::vector<Member>;
  using Field = std::pair<std::string, std::string>;
  using Hash = std::vector<Field>;  // in the order in which they came
  struct Value {
    std::variant<std::string, SortedSet, Hash> content;
    std::optional<std::int64_t> ends;  // ms
  };
  struct Command;

  std::int64_t now_ms() const { return static_cast<std::int64_t>(now_us_ / 1'000); }
  Value* find(const std::string& key);
  template <class Content>
  Content* find(const std::string& key);  // null: no key; throws WRONGTYPE
  template <class Content>
  Content& make(const std::string& key);
  template <class Content>
  void drop_empty(const std::string& key);
  bool end_at(const std::string& key, std::int64_t ms);

  Answer time(Words words);
  Answer get(Words words);
  Answer set(Words words);
  Answer getrange(Words words);
  Answer incr(Words words);
  Answer del(Words words);
  Answer exists(Words words);
  Answer type(Words words);
  Answer pttl(Words words);
  Answer pexpire(Words words);
  Answer pexpireat(Words words);
  Answer persist(Words words);
  Answer hget(Words words);
  Answer hset(Words words);
  Answer hdel(Words words);
  Answer hexists(Words words);
  Answer hlen(Words words);
  Answer hscan(Words words);
  Answer zadd(Words words);
  Answer zrem(Words words);
  Answer zrange(Words words);
  Answer zrangebyscore(Words words);
  Answer zscore(Words words);
  Answer zcard(Words words);
  Answer zrank(Words words);
  Answer publish(Words words);
  Answer pubsub(Words words);

  std::uint64_t now_us_ = 0;
  std::map<std::string, Value> keys_;
  std::map<std::string, unsigned> listeners_;
  std::vector<std::pair<std::string, std::string>> messages_;
};

}  // namespace dlock::sim
