#include <gtest/gtest.h>

#include "backends/redis/ballot.hpp"

namespace dlock::redis {
namespace {

Vote granted() { return {.kind = Vote::Kind::granted}; }
Vote held_by(const std::string& holder) {
  Vote vote{.kind = Vote::Kind::held};
  vote.holder = holder;
  vote.look_in = Millis{1'000};
  return vote;
}
/// Of five, where the last one comes first in the common order; we wait at the second.
Ballot of_five(const std::vector<std::optional<Vote>>& votes) {
  Ballot ballot({4, 3, 2, 1, 0}, 3, 1);
  for (unsigned node = 0; node < votes.size(); ++node) {
    if (votes[node]) ballot.put(node, *votes[node]);
  }
  return ballot;
}

TEST(RedisBallot, AMajorityThatRefusesForOneHolderDenies) {
  const auto refusal =
      of_five({held_by("a"), granted(), held_by("a"), held_by("a"), granted()}).common_refusal();
  EXPECT_TRUE(refusal.denies);
  EXPECT_EQ(refusal.servers, 3u);
  EXPECT_EQ(refusal.head, 3u);
}

TEST(RedisBallot, AMajorityThatRefusesForSeveralHoldersDoesNot) {
  const auto refusal =
      of_five({held_by("a"), granted(), held_by("a"), held_by("b"), held_by("b")}).common_refusal();
  EXPECT_FALSE(refusal.denies);
  EXPECT_EQ(refusal.servers, 2u);
}

TEST(RedisBallot, NobodyWaitsWhereSomethingIsLeftOfAnother) {
  const auto refusal =
      of_five({held_by("a"), held_by("dead"), held_by("a"), held_by("a"), {}}).common_refusal();
  EXPECT_EQ(refusal.head, 3u);
}

TEST(RedisBallot, WhoeverWaitsStaysWhereItIs) {
  const auto refusal =
      of_five({held_by("a"), held_by("a"), held_by("a"), held_by("a"), {}}).common_refusal();
  EXPECT_EQ(refusal.head, 1u);
}

TEST(RedisBallot, WithoutARefusalTheHeadIsOurs) {
  const auto refusal = of_five({granted(), {}, granted(), {}, {}}).common_refusal();
  EXPECT_EQ(refusal.head, 1u);
  EXPECT_EQ(refusal.servers, 0u);
  EXPECT_FALSE(refusal.denies);
}

TEST(RedisBallot, SplitVotesMeetAtTheFirstThatAnswersWhateverItSays) {
  EXPECT_EQ(of_five({granted(), held_by("a"), {}, held_by("b"), {}}).meeting_point(), 3u);
  EXPECT_EQ(of_five({granted(), held_by("a"), {}, {}, granted()}).meeting_point(), 4u);
  EXPECT_EQ(of_five({}).meeting_point(), 1u);
  EXPECT_EQ(of_five({granted(), held_by("a"), {}, held_by("b"), {}}).meeting_point(true), 0u);
}

TEST(RedisBallot, AVoteThatIsTakenBackCountsNoMore) {
  Ballot ballot = of_five({held_by("a"), held_by("a"), held_by("a"), {}, {}});
  ballot.take_back(0);
  EXPECT_FALSE(ballot.common_refusal().denies);
  EXPECT_FALSE(ballot.at(0));
}

TEST(RedisBallot, AnotherListIsNoticed) {
  Vote other = held_by("a");
  other.list = "0badcafe";
  EXPECT_EQ(of_five({held_by("b"), other}).with_another_list("deadbeef"), 1u);
  EXPECT_EQ(of_five({held_by("b"), other}).with_another_list("0badcafe"), std::nullopt);
}

}  // namespace
}  // namespace dlock::redis
