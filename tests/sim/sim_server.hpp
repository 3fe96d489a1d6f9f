// One simulated Redis server of a lock: the shipped scripts, and what must be true of each of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/calls.hpp"
#include "local_clock.hpp"
#include "script_server.hpp"

namespace dlock::sim {

class SimServer {
 public:
  SimServer(const redis::Names& names, Millis ttl, LocalClock clock,
            const std::vector<ScriptBug>& bugs);

  redis::Reply serve(const redis::ScriptCall& call, Nanos now);

  /// The client of this waiter listens from now on.
  void listen(const std::string& waiter);
  void stop_listening(const std::string& waiter);
  /// Waiter and words.
  std::vector<std::pair<std::string, std::string>> take_messages();

  /// A restart without its data.
  void forget();
  /// What an operator does by hand.
  void remove_lock();

  struct Holder {
    std::string waiter;
    unsigned round = 0;     // 0: it is offered the lock
    std::string number;     // of slots
    std::int64_t ends = 0;  // ms of its clock
    bool operator==(const Holder&) const = default;
  };
  std::vector<Holder> holders(Nanos now);
  /// The keys that are there but for those that may stay.
  std::string left(Nanos now);

  /// A promise that a script has broken; "" if none.
  const std::string& broken() const { return broken_; }

  bool down = false;
  Nanos stopped_until{0};
  LocalClock clock;

 private:
  RedisModel& data() { return server_.data(); }
  std::int64_t set_clock(Nanos now);
  void check(const redis::ScriptCall& call, const std::vector<Holder>& before,
             const std::vector<Holder>& after, std::int64_t now_ms);

  const redis::Names names_;
  const Millis ttl_;
  ScriptServer server_;
  std::map<const redis::Script*, std::string_view> texts_;  // of the scripts that have a bug
  std::multiset<std::string> listeners_;
  std::set<std::string> given_up_;  // waiters that shall be granted nothing any more
  std::string broken_;
};

}  // namespace dlock::sim
