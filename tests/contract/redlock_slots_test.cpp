// The numbers of slots: each is held on a majority of the servers.
#include <gtest/gtest.h>

#include "redlock_slots_fixture.hpp"

namespace dlock::test {
namespace {

TEST_F(RedlockSlots, NumbersAreGivenWhileAMinorityIsDown) {
  strike(0b10001, Death::killed);
  auto a = client();
  auto b = client();
  auto one = hold(*a, slots("job", 2));
  auto two = hold(*b, slots("job", 2));
  EXPECT_EQ(one->slot(), 1u);
  EXPECT_EQ(two->slot(), 2u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  heal(0b10001, Death::killed);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  EXPECT_TRUE(release(*two));
  EXPECT_EQ(hold(*a, slots("job", 2))->slot(), 2u);
}

TEST_F(RedlockSlots, ANumberThatAMajorityHasForAnotherIsNotGiven) {
  put_holder(0b00111, "0f", 1);
  auto a = client();
  auto lease = hold(*a, slots("job", 3));
  EXPECT_EQ(lease->slot(), 2u);
  EXPECT_TRUE(eventually([&] { return having_number(*lease, 2) == kEach; }));
  // The server that was asked first may have given it another: that has gone back.
  for (const unsigned node : members(kEach)) {
    EXPECT_NE(holder_of(node, 1), waiter_of(*lease));
    EXPECT_NE(holder_of(node, 3), waiter_of(*lease));
  }
}

// Whichever server is the first, it does not know that number 1 is taken elsewhere.
TEST_F(RedlockSlots, ANumberThatTheFirstServerHasGivenInVainIsGivenBack) {
  auto a = client();
  for (const Mask other : {0b11100U, 0b00111U}) {
    SCOPED_TRACE(in_words(other));
    put_holder(other, "0f", 1);
    auto lease = hold(*a, slots("job", 3));
    EXPECT_EQ(lease->slot(), 2u);
    EXPECT_TRUE(eventually([&] { return having_number(*lease, 2) == kEach; }));
    EXPECT_EQ(having_number(*lease, 1), 0u);
    EXPECT_TRUE(release(*lease));
    flush(kEach);
  }
}

// It has granted number 1, which is taken elsewhere; and there number 2 is another's.
TEST_F(RedlockSlots, AServerWhereTheSecondNumberIsTakenGivesTheFirstBack) {
  start(3);
  const Mask first = 1U << first_asked();
  put_holder(0b111 & ~first, "0a", 1);
  put_holder(first, "0b", 2);
  auto a = client();
  auto lease = hold(*a, slots("job", 3));
  EXPECT_EQ(lease->slot(), 2u);
  let_finish(*a);
  EXPECT_NE(holder_of(first_asked(), 1), waiter_of(*lease));
}

TEST_F(RedlockSlots, ANumberThatFewHaveForAnotherIsGiven) {
  put_holder(0b00011, "0f", 1);
  auto a = client();
  auto lease = hold(*a, slots("job", 3));
  const unsigned number = lease->slot().value_or(0);
  EXPECT_TRUE(is_majority(having_number(*lease, number)));
  // Where it was another's, a renewal takes it when that has gone.
  remove_holder("0f");
  EXPECT_TRUE(eventually([&] { return renew(*lease) && having_number(*lease, number) == kEach; }));
}

// Every server has room, and all three numbers are taken.
TEST_F(RedlockSlots, AWaiterGetsInWhereNoServerIsFull) {
  start(3);
  for (const std::string gone : {"0a", "0b", "0c"}) {
    SCOPED_TRACE(gone);
    put_holder(0b011, "0a", 1);
    put_holder(0b110, "0b", 2);
    put_holder(0b101, "0c", 3);
    auto a = client();
    EXPECT_EQ(code_of(try_once(*a, slots("job", 3))), Errc::busy);
    Waiting first(client(), slots("job", 3));
    Waiting second(client(), slots("job", 3));
    ASSERT_TRUE(first.blocked());
    ASSERT_TRUE(second.blocked());
    for (const RedisServer& server : servers) server.command("ZREM", names("job").lock, gone);
    std::unique_ptr<Lease> lease;
    ASSERT_TRUE(eventually([&] { return first.done(0) || second.done(0); }));
    Waiting& winner = first.done(0) ? first : second;
    lease = winner.lease();
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->slot(), gone == "0a" ? 1u : gone == "0b" ? 2u : 3u);
    EXPECT_TRUE(release(*lease));
    lease = (&winner == &first ? second : first).lease();
    ASSERT_TRUE(lease);
    EXPECT_TRUE(release(*lease));
    for (const RedisServer& server : servers) server.command("FLUSHALL");
  }
}

TEST_F(RedlockSlots, AServerThatForgetsIsGivenTheNumberAgain) {
  auto a = client();
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*a, slots("job", 3));
  ASSERT_TRUE(eventually([&] { return having_number(*two, 2) == kEach; }));
  let_finish(*a);
  flush(0b01001);
  EXPECT_TRUE(eventually([&] { return renew(*two) && having_number(*two, 2) == kEach; }));
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(renew(*one)); }));
  EXPECT_EQ(two->slot(), 2u);
}

}  // namespace
}  // namespace dlock::test
