#include <gtest/gtest.h>

#include <algorithm>

#include "backends/redis/acquire_protocol.hpp"

namespace dlock::redis {
namespace {

using Order = AcquireProtocol::Order;
using State = AcquireProtocol::State;
using Ask = AskAnswer::Kind;
using Voted = VoteAnswer::Kind;

constexpr Millis kTtl{10'000};

AskAnswer granted(std::uint64_t token, unsigned number = 0, std::string taken = "") {
  return {.kind = Ask::granted, .token = token, .number = number, .taken = std::move(taken)};
}
AskAnswer held(Millis ask_in, int place, unsigned waiting = 1) {
  return {.kind = Ask::held, .token = 100, .ask_in = ask_in, .place = place, .waiting = waiting};
}
VoteAnswer yes() { return {.kind = Voted::yes}; }
VoteAnswer no() { return {.kind = Voted::held}; }

// Of `servers`, the first of which is asked first.
class Driver {
 public:
  explicit Driver(unsigned servers, bool waits = true, unsigned slots = 0)
      : protocol({.order = order_of(servers),
                  .ttl = kTtl,
                  .slots = slots,
                  .waits = waits,
                  .round_within = Millis{200},
                  .seed = 1}) {
    protocol.ask(now);
  }

  /// The requests to be sent now, which must be of this kind; undos only count if they are asked
  /// for.
  std::vector<Order> orders(Order::Kind kind) {
    for (const Order& order : protocol.take_orders()) pending.push_back(order);
    std::vector<Order> out;
    std::erase_if(pending, [&](const Order& order) {
      if (order.kind == kind) out.push_back(order);
      return order.kind == kind;
    });
    return out;
  }
  Order ask() {
    const auto all = orders(Order::Kind::ask);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Order() : all.front();
  }
  std::vector<Order> votes() { return orders(Order::Kind::vote); }
  std::vector<Order> undos() { return orders(Order::Kind::undo); }
  template <class Answer>
  void answer(const Order& order, const Answer& its) {
    protocol.answered(order, its, now);
  }
  void pass(Millis time) {
    now += time;
    protocol.tick(now);
  }
  void wake() {
    now = protocol.wake_at();
    protocol.tick(now);
  }
  void hear(unsigned server, std::string_view words) {
    protocol.heard(server, parse_message(words), now);
  }

  static std::vector<unsigned> order_of(unsigned servers) {
    std::vector<unsigned> out;
    for (unsigned server = 0; server < servers; ++server) out.push_back(server);
    return out;
  }

  Deadline now{Millis{1'000'000}};
  AcquireProtocol protocol;
  std::vector<Order> pending;
};

TEST(RedisAcquireProtocol, OneServerGrantsByItself) {
  Driver driver(1);
  driver.answer(driver.ask(), granted(7));
  EXPECT_EQ(driver.protocol.state(), State::granted);
  EXPECT_EQ(driver.protocol.token(), 7u);
  EXPECT_EQ(driver.protocol.round(), 1u);
}

TEST(RedisAcquireProtocol, AWaiterJoinsSleepsAndAsksWhenItIsTold) {
  Driver driver(1);
  const Order first = driver.ask();
  EXPECT_FALSE(first.join);
  driver.answer(first, held(Millis{3'000}, -1));
  EXPECT_EQ(driver.protocol.state(), State::sleeping);
  driver.wake();
  const Order second = driver.ask();
  EXPECT_TRUE(second.join);
  EXPECT_GT(second.round, first.round);
  driver.answer(second, held(Millis{3'000}, 2));
  EXPECT_GE(driver.protocol.wake_at(), driver.now + Millis{3'000});
  driver.hear(0, "look 1000");
  EXPECT_EQ(driver.protocol.wake_at(), driver.now + Millis{1'000});
  driver.hear(0, "go");
  driver.answer(driver.ask(), granted(8));
  EXPECT_EQ(driver.protocol.state(), State::granted);
}

TEST(RedisAcquireProtocol, AMessageThatComesBeforeTheAnswerIsNotForgotten) {
  Driver driver(1);
  driver.answer(driver.ask(), held(Millis{3'000}, -1));
  driver.wake();
  const Order order = driver.ask();
  driver.hear(0, "go");
  driver.answer(order, held(Millis{3'000}, 0));
  EXPECT_EQ(driver.protocol.wake_at(), driver.now);
}

TEST(RedisAcquireProtocol, AMajorityHasTheTokenOfTheQueueServer) {
  Driver driver(3);
  driver.answer(driver.ask(), granted(50));
  const auto votes = driver.votes();
  ASSERT_EQ(votes.size(), 2u);
  EXPECT_EQ(votes[0].token, 50u);
  driver.answer(votes[1], yes());
  EXPECT_EQ(driver.protocol.state(), State::granted);
  EXPECT_EQ(driver.protocol.token(), 50u);
}

TEST(RedisAcquireProtocol, ALargerTokenElsewhereMakesAllVoteAgain) {
  Driver driver(3);
  driver.answer(driver.ask(), granted(50));
  auto votes = driver.votes();
  driver.answer(votes[0], VoteAnswer{.kind = Voted::overtaken, .token = 70});
  driver.answer(votes[1], yes());
  votes = driver.votes();
  ASSERT_EQ(votes.size(), 3u);
  EXPECT_GT(votes[0].token, 70u);
  for (const Order& vote : votes) driver.answer(vote, yes());
  EXPECT_EQ(driver.protocol.state(), State::granted);
  EXPECT_EQ(driver.protocol.token(), votes[0].token);
}

TEST(RedisAcquireProtocol, ASlowQueueServerIsGivenAHeadStart) {
  Driver driver(3);
  EXPECT_EQ(driver.ask().server, 0u);
  driver.pass(Millis{49});
  EXPECT_TRUE(driver.orders(Order::Kind::ask).empty());
  driver.pass(Millis{1});
  const Order second = driver.ask();
  EXPECT_EQ(second.server, 1u);
  driver.answer(second, granted(50));
  // In a new round: what the first may still grant is no vote.
  const auto votes = driver.votes();
  ASSERT_EQ(votes.size(), 3u);
  EXPECT_GT(votes[0].round, second.round);
}

// Twice as long as it took to answer, but at most half of what the round may take.
TEST(RedisAcquireProtocol, AServerThatIsFarAwayIsWaitedForLonger) {
  for (const auto& [took, head_start] : {std::pair(40, 80), std::pair(180, 100)}) {
    SCOPED_TRACE(took);
    Driver driver(3);
    const Order first = driver.ask();
    driver.now += Millis{took};
    driver.answer(first, held(Millis{3'000}, -1));
    driver.wake();
    EXPECT_EQ(driver.ask().server, 0u);
    driver.pass(Millis{head_start - 1});
    EXPECT_TRUE(driver.orders(Order::Kind::ask).empty());
    driver.pass(Millis{1});
    EXPECT_EQ(driver.ask().server, 1u);
  }
}

TEST(RedisAcquireProtocol, AServerThatCannotBeReachedIsAskedLast) {
  Driver driver(3);
  driver.protocol.failed(driver.ask(), driver.now);
  const Order second = driver.ask();
  EXPECT_EQ(second.server, 1u);
  driver.answer(second, held(Millis{3'000}, -1));
  driver.wake();
  EXPECT_EQ(driver.ask().server, 1u);
}

TEST(RedisAcquireProtocol, WhatIsGrantedTooLateIsUndone) {
  Driver driver(3);
  const Order first = driver.ask();
  driver.pass(Millis{50});
  driver.answer(driver.ask(), held(Millis{3'000}, -1));
  driver.wake();
  driver.answer(driver.ask(), held(Millis{3'000}, 1));
  driver.answer(first, granted(50));
  const auto undos = driver.undos();
  ASSERT_EQ(undos.size(), 1u);
  EXPECT_EQ(undos[0].server, 0u);
  EXPECT_EQ(undos[0].round, first.round);
}

TEST(RedisAcquireProtocol, ARoundThatFailsIsUndoneQuietlyOnlyTheFirstTime) {
  Driver driver(3);
  for (const bool quiet : {true, false}) {
    driver.answer(driver.ask(), granted(50));
    const auto votes = driver.votes();
    for (const Order& vote : votes) driver.answer(vote, no());
    EXPECT_EQ(driver.protocol.state(), State::resting);
    const auto undos = driver.undos();
    ASSERT_EQ(undos.size(), 3u);
    EXPECT_EQ(undos[0].quiet, quiet);
    EXPECT_FALSE(undos[1].quiet);
    driver.wake();
  }
}

TEST(RedisAcquireProtocol, TheFirstWaiterDoesNotBelieveItsQueueServer) {
  Driver driver(3);
  driver.answer(driver.ask(), held(Millis{3'000}, -1));
  driver.wake();
  driver.answer(driver.ask(), held(Millis{3'000}, 0));
  EXPECT_TRUE(driver.votes().empty());
  driver.wake();  // by the timer
  driver.answer(driver.ask(), held(Millis{3'000}, 0));
  const auto votes = driver.votes();
  ASSERT_EQ(votes.size(), 3u);
  EXPECT_EQ(votes[0].token, 101u);
  driver.answer(votes[0], no());
  driver.answer(votes[1], yes());
  driver.answer(votes[2], yes());
  EXPECT_EQ(driver.protocol.state(), State::granted);
}

TEST(RedisAcquireProtocol, NorDoesItWhenNobodyAnsweredTheTimer) {
  Driver driver(3);
  driver.answer(driver.ask(), held(Millis{3'000}, -1));
  driver.wake();
  driver.answer(driver.ask(), held(Millis{3'000}, 0));
  driver.wake();  // by the timer
  while (driver.protocol.state() == State::asking) driver.wake();
  EXPECT_EQ(driver.orders(Order::Kind::ask).size(), 3u);
  ASSERT_EQ(driver.protocol.state(), State::resting);
  driver.wake();
  driver.answer(driver.ask(), held(Millis{3'000}, 0));
  EXPECT_EQ(driver.votes().size(), 3u);
}

TEST(RedisAcquireProtocol, ARefusalEndsARowOfRoundsThatFailed) {
  Driver driver(3);
  const auto fail = [&] {
    driver.answer(driver.ask(), granted(50));
    for (const Order& vote : driver.votes()) driver.answer(vote, no());
    EXPECT_EQ(driver.protocol.state(), State::resting);
  };
  for (int i = 0; i < 5; ++i) {
    fail();
    driver.wake();
  }
  driver.answer(driver.ask(), held(Millis{3'000}, 1));
  driver.hear(0, "go");
  fail();
  EXPECT_LE(driver.protocol.wake_at(), driver.now + Millis{60});
}

TEST(RedisAcquireProtocol, WhoIsCalledRestsNoLonger) {
  Driver driver(3);
  driver.answer(driver.ask(), granted(50));
  for (const Order& vote : driver.votes()) driver.answer(vote, no());
  ASSERT_EQ(driver.protocol.state(), State::resting);
  driver.hear(2, "go");
  EXPECT_EQ(driver.ask().server, 2u);
}

// Or it would be offered the lock there, which would cost the others a second.
TEST(RedisAcquireProtocol, WhoHoldsItWithoutTheQueueServerLeavesItsQueue) {
  for (const bool queue_server_votes : {true, false}) {
    Driver driver(3);
    driver.answer(driver.ask(), held(Millis{3'000}, -1));
    driver.wake();
    driver.answer(driver.ask(), held(Millis{3'000}, 0));
    driver.wake();
    driver.answer(driver.ask(), held(Millis{3'000}, 0));
    const auto votes = driver.votes();
    ASSERT_EQ(votes.size(), 3u);
    driver.answer(votes[0], queue_server_votes ? yes() : no());
    for (const unsigned i : {1u, 2u}) driver.answer(votes[i], yes());
    EXPECT_EQ(driver.protocol.state(), State::granted);
    const auto leaves = driver.orders(Order::Kind::leave_queue);
    EXPECT_EQ(std::ranges::count(leaves, 0u, &Order::server), queue_server_votes ? 0 : 1);
  }
}

TEST(RedisAcquireProtocol, BeforeBusyIsSaidAllVoteOnce) {
  Driver driver(3, false);
  driver.answer(driver.ask(), held(Millis{3'000}, -1, 0));
  ASSERT_TRUE(driver.protocol.start_last_round(driver.now));
  for (const Order& vote : driver.votes()) driver.answer(vote, no());
  EXPECT_EQ(driver.protocol.state(), State::resting);
  driver.wake();
  driver.answer(driver.ask(), held(Millis{3'000}, -1, 0));
  EXPECT_FALSE(driver.protocol.start_last_round(driver.now));
}

// Or what is said of the lock then would rest on the word of one, since two are down.
TEST(RedisAcquireProtocol, ThatARoundHasFailedIsKnownWhenAMajorityHasAnswered) {
  for (const bool the_rest_is_silent : {false, true}) {
    Driver driver(5, false);
    driver.answer(driver.ask(), held(Millis{3'000}, -1, 0));
    ASSERT_TRUE(driver.protocol.start_last_round(driver.now));
    const auto votes = driver.votes();
    ASSERT_EQ(votes.size(), 5u);
    for (const unsigned i : {3u, 4u}) driver.protocol.failed(votes[i], driver.now);
    driver.answer(votes[0], no());
    EXPECT_EQ(driver.protocol.state(), State::voting);
    EXPECT_TRUE(driver.undos().empty());
    if (the_rest_is_silent) {
      driver.wake();
    } else {
      for (const unsigned i : {1u, 2u}) driver.answer(votes[i], no());
    }
    EXPECT_EQ(driver.protocol.state(), State::resting);
    EXPECT_EQ(driver.undos().size(), 5u);
  }
}

TEST(RedisAcquireProtocol, BehindAWaiterNobodyVotes) {
  Driver driver(3, false);
  driver.answer(driver.ask(), held(Millis{3'000}, -1, 1));
  EXPECT_FALSE(driver.protocol.start_last_round(driver.now));
}

TEST(RedisAcquireProtocol, ANumberThatIsTakenIsReplacedInANewRound) {
  Driver driver(3, true, 3);
  const Order ask = driver.ask();
  driver.answer(ask, granted(50, 1));
  auto votes = driver.votes();
  EXPECT_EQ(votes[0].number, 1u);
  for (const Order& vote : votes) {
    driver.answer(vote, VoteAnswer{.kind = Voted::taken, .token = 40, .taken = "11"});
  }
  votes = driver.votes();
  ASSERT_EQ(votes.size(), 3u);
  EXPECT_EQ(votes[0].number, 3u);
  EXPECT_EQ(votes[0].token, 50u);
  EXPECT_GT(votes[0].round, ask.round);
}

TEST(RedisAcquireProtocol, AnotherModeOnAMajorityIsAConflict) {
  Driver driver(3, true, 2);
  driver.answer(driver.ask(), AskAnswer{.kind = Ask::other_mode, .token = 100, .mode = "n3"});
  for (const Order& vote : driver.votes()) {
    driver.answer(vote, VoteAnswer{.kind = Voted::held, .mode = "n3", .record = "{}"});
  }
  EXPECT_EQ(driver.protocol.state(), State::conflict);
  EXPECT_EQ(driver.protocol.other_mode(), "n3");
}

TEST(RedisAcquireProtocol, AWaiterThatWasBrokenOnAMajorityGivesUp) {
  Driver driver(3);
  driver.answer(driver.ask(), granted(50));
  for (const Order& vote : driver.votes()) {
    driver.answer(vote, VoteAnswer{.kind = Voted::given_up});
  }
  EXPECT_EQ(driver.protocol.state(), State::given_up);
}

TEST(RedisAcquireProtocol, AlsoOfOneServerTooLateForTheTtlIsNotGranted) {
  Driver driver(1);
  const Order order = driver.ask();
  driver.now += kTtl;
  driver.answer(order, granted(7));
  EXPECT_EQ(driver.protocol.state(), State::resting);
  EXPECT_EQ(driver.undos().size(), 1u);
}

TEST(RedisAcquireProtocol, TooLateForTheTtlIsNotGranted) {
  Driver driver(3);
  driver.answer(driver.ask(), granted(50));
  driver.now += kTtl;
  driver.answer(driver.votes().front(), yes());
  EXPECT_EQ(driver.protocol.state(), State::resting);
}

}  // namespace
}  // namespace dlock::redis
