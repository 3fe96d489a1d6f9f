#include <gtest/gtest.h>

#include "backends/redis/server_reports.hpp"

namespace dlock::redis {
namespace {

class RedisServerReports : public testing::Test {
 protected:
  static std::vector<Address> addresses() {
    std::vector<Address> out(3);
    for (unsigned i = 0; i < 3; ++i) out[i].shown = "redis s" + std::to_string(i);
    return out;
  }
  static std::string record_by(const std::string& list) {
    return R"({"id":"w:1","mode":"exclusive","slots":1,"servers":")" + list + R"("})";
  }

  const Cluster cluster{addresses(), "dlock:"};
  ServerReports reports{cluster};
  const Error down{Errc::unreachable, "down"};
};

TEST_F(RedisServerReports, AMajorityOfAnswersIsNeeded) {
  reports.answered(0, "", "");
  EXPECT_FALSE(reports.has_quorum());
  EXPECT_FALSE(reports.too_few(false));
  reports.failed(1, down);
  EXPECT_FALSE(reports.too_few(false));  // the last one may still answer
  const auto error = reports.too_few(true);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "1 of 3 servers answered, 2 are needed: down; redis s2: no answer in time");
  reports.answered(2, "", "");
  EXPECT_TRUE(reports.has_quorum());
  EXPECT_FALSE(reports.too_few(true));
}

TEST_F(RedisServerReports, AHolderIsNamedByAMajorityInOneRound) {
  reports.begin_round(1);
  reports.answered(0, "a:1", "");
  reports.answered(1, "b:1", "");
  EXPECT_FALSE(reports.majority_holder());
  reports.answered(2, "b:1", "");
  EXPECT_EQ(reports.majority_holder(), 1u);
  EXPECT_EQ(reports.holder(1), "b:1");
  reports.begin_round(1);
  EXPECT_TRUE(reports.majority_holder());
  reports.begin_round(2);
  EXPECT_FALSE(reports.majority_holder());
}

// Not when its holder has gone, and the server says nothing since.
TEST_F(RedisServerReports, AnotherListCountsInItsRound) {
  reports.begin_round(1);
  reports.answered(1, "w:1", record_by("other"));
  EXPECT_EQ(reports.with_another_list(), 1u);
  reports.answered(1, "w:1", record_by(cluster.list()));
  EXPECT_FALSE(reports.with_another_list());
  reports.answered(2, "w:1", record_by("other"));
  reports.begin_round(2);
  EXPECT_FALSE(reports.with_another_list());
}

}  // namespace
}  // namespace dlock::redis
