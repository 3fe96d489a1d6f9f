// What the tests of redlock's slots share: holders that are there already, and who has which
// number.
#pragma once

#include "redlock_fixture.hpp"

namespace dlock::test {

class RedlockSlots : public RedlockTest {
 protected:
  /// A slots holder on some of the servers, of "job", for a minute.
  void put_holder(Mask mask, const std::string& id, unsigned number, unsigned slots = 3) {
    const std::string until = std::to_string(
        std::chrono::floor<Millis>(std::chrono::system_clock::now().time_since_epoch()).count() +
        60'000);
    const std::string record = R"({"id":")" + id + R"(:1","mode":"slots","slots":)" +
                               std::to_string(slots) + R"(,"ttl_ms":60000,"fence":7})";
    const redis::Names its = names("job");
    for (const unsigned node : members(mask)) {
      const RedisServer& server = servers[node];
      server.command("ZADD", its.lock, until, id);
      server.command("PEXPIREAT", its.lock, until);
      server.command("HSET", its.owner, "@mode", "n" + std::to_string(slots), id, record, "~" + id,
                     "1:" + std::to_string(number), field(number), id);
      server.command("PEXPIREAT", its.owner, until);
    }
  }
  void remove_holder(const std::string& id) {
    for (const RedisServer& server : servers) server.command("ZREM", names("job").lock, id);
  }
  /// The id of its waiter, without the round.
  static std::string waiter_of(const Lease& lease) {
    return lease.owner_id().substr(0, lease.owner_id().find(':'));
  }
  static std::string field(unsigned number) { return "#" + std::to_string(number); }
  std::string holder_of(unsigned node, unsigned number) const {
    return servers[node].command("HGET", names("job").owner, field(number));
  }
  /// The servers that have the number for this lease.
  Mask having_number(const Lease& lease, unsigned number) const {
    Mask out = 0;
    for (const unsigned node : members(kEach)) {
      if (holder_of(node, number) == waiter_of(lease)) out |= 1U << node;
    }
    return out;
  }
};

}  // namespace dlock::test
