// What is particular about the numbers of slots with MySQL: holders of an earlier dlock, many
// holders, and commands that outlive the row lock.
#include <gtest/gtest.h>

#include "mysql_fixture.hpp"

namespace dlock::test {
namespace {

using MysqlSlots = MysqlTest;
INSTANTIATE_TEST_SUITE_P(Methods, MysqlSlots, testing::Values("table", "version"), mysql_name);

TEST_P(MysqlSlots, AHolderWithAnEarlierDlockCountsAndHasNoNumber) {
  auto earlier = hold(*a, slots("job", 2));
  server->ask("UPDATE dlock_locks SET slot = 0");
  auto lease = hold(*b, slots("job", 2));
  EXPECT_EQ(lease->slot(), 1u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 2))), Errc::busy);
  const auto holders = inspect(*b, "job").holders;
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].slot, std::nullopt);
  EXPECT_EQ(holders[1].slot, 1u);
  EXPECT_TRUE(renew(*earlier));
  EXPECT_TRUE(release(*earlier));
  EXPECT_EQ(hold(*a, slots("job", 2))->slot(), 2u);
}

TEST_P(MysqlSlots, TheOneNumberOfAThousandThatIsFreeIsFound) {
  make_tables();
  std::string rows;
  for (int slot = 1'000; slot > 0; --slot) {
    if (slot == 437) continue;
    rows += (rows.empty() ? "" : ", ") + std::string("(") +
            std::to_string(static_cast<int>(method_number())) + ", 'job', 'holder', " +
            std::to_string(slot) + ", 'x" + std::to_string(slot) +
            "', 'slots', 1000, 1, UTC_TIMESTAMP(6), '9999-12-31', '')";
  }
  server->ask(
      "INSERT INTO dlock_locks (method, name, role, slot, owner, mode, slots, fence, "
      "since, expires_at, record) VALUES " +
      rows);
  auto lease = hold(*a, slots("job", 1'000));
  EXPECT_EQ(lease->slot(), 437u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 1'000))), Errc::busy);
}

}  // namespace
}  // namespace dlock::test
