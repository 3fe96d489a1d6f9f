// The numbers of slots on servers that lose their data, or whose data somebody deletes.
#include <gtest/gtest.h>

#include <array>

#include "redlock_slots_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockSlotsData : public RedlockSlots {};

// Each of the holders, whoever renews first.
TEST_F(RedlockSlotsData, ServersMayForgetOneAfterAnother) {
  start(3);
  auto a = client();
  std::array<std::unique_ptr<Lease>, 3> leases;
  for (auto& lease : leases) lease = hold(*a, slots("job", 3));
  const auto all_are_at = [&](unsigned node) {
    bool all = true;
    for (unsigned number = 1; number <= 3; ++number) {
      all = holder_of(node, number) == waiter_of(*leases[number - 1]) && all;
    }
    return all;
  };
  for (unsigned node = 0; node < 3; ++node) {
    EXPECT_TRUE(eventually([&] { return all_are_at(node); }));
  }
  for (const bool last_first : {true, false}) {
    for (unsigned node = 0; node < 3; ++node) {
      SCOPED_TRACE(node);
      let_finish(*a);
      flush(1U << node);
      EXPECT_TRUE(eventually([&] {
        for (unsigned i = 0; i < 3; ++i) {
          EXPECT_TRUE(renew_soon(*leases[last_first ? 2 - i : i]));
          let_finish(*a);
        }
        return all_are_at(node) || HasFailure();
      }));
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(RedlockSlotsData, AHolderThatComesToAnEmptyServerKeepsNobodyOut) {
  start(3);
  auto a = client();
  for (const bool shares : {false, true}) {
    const auto wanted = [&] { return shares ? shared("job") : slots("job", 4); };
    std::array<std::unique_ptr<Lease>, 4> leases;
    for (unsigned i = 0; i < 3; ++i) leases[i] = hold(*a, wanted());
    let_finish(*a);
    flush(0b00001);
    leases[3] = hold(*a, wanted());
    EXPECT_TRUE(eventually([&] {
      bool all = true;
      for (const auto& lease : leases) {
        all = renew_soon(*lease) && all;
        const std::string its = servers[0].command("ZSCORE", names("job").lock, waiter_of(*lease));
        all = its != "(nil)" && its != "" && all;
      }
      return all;
    }));
    for (const auto& lease : leases) EXPECT_TRUE(release(*lease));
    for (const RedisServer& server : servers) server.command("FLUSHALL");
  }
}

// Of a server that was given them again, too: what an operator deletes does not come back.
TEST_F(RedlockSlotsData, WhatIsDeletedIsNotGivenAgain) {
  start(3);
  auto a = client();
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*a, slots("job", 3));
  const redis::Names its = names("job");
  const auto has = [&](const Lease& lease) {
    return servers[0].command("ZSCORE", its.lock, waiter_of(lease)) != "(nil)";
  };
  flush(0b00001);
  EXPECT_TRUE(eventually([&] { return renew(*two) && renew(*one) && has(*one) && has(*two); }));
  const auto renew_both = [&] {
    for (int times = 0; times < 3; ++times) {
      EXPECT_TRUE(renew_soon(*one));
      EXPECT_TRUE(renew_soon(*two));
      let_finish(*a);
    }
  };
  servers[0].command("ZREM", its.lock, waiter_of(*one));
  renew_both();
  EXPECT_FALSE(has(*one));
  EXPECT_TRUE(has(*two));
  servers[0].command("DEL", its.lock);
  auto b = client();
  auto three = hold(*b, slots("job", 3));
  EXPECT_TRUE(eventually([&] { return has(*three); }));
  renew_both();
  EXPECT_FALSE(has(*one));
  EXPECT_FALSE(has(*two));
}

}  // namespace
}  // namespace dlock::test
