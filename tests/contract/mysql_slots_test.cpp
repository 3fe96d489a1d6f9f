// What is particular about the numbers of slots with MySQL: holders of an earlier dlock, many
// holders, and commands that outlive the row lock.
#include <gtest/gtest.h>

#include <algorithm>

#include "mysql_fixture.hpp"

namespace dlock::test {
namespace {

using MysqlSlots = MysqlTest;
INSTANTIATE_TEST_SUITE_P(Methods, MysqlSlots, testing::Values("table", "row", "version"),
                         mysql_name);

TEST_P(MysqlSlots, AHolderWithAnEarlierDlockCountsAndHasNoNumber) {
  if (is_row()) return;  // every dlock has written down which row it had locked
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
  if (is_row()) return;  // each holder would need a connection
  make_tables();
  std::string rows;
  for (int slot = 1'000; slot > 0; --slot) {
    if (slot == 437) continue;
    rows += (rows.empty() ? "" : ", ") + std::string("(") +
            std::to_string(static_cast<int>(method_number())) + ", 'job', 0, NULL, " +
            std::to_string(slot) + ", 'x" + std::to_string(slot) +
            "', 2, 1000, 1, 0, UTC_TIMESTAMP(6), '9999-12-31', '')";
  }
  server->ask(
      "INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, beats, "
      "since, expires_at, record) VALUES " +
      rows);
  auto lease = hold(*a, slots("job", 1'000));
  EXPECT_EQ(lease->slot(), 437u);
  EXPECT_EQ(code_of(try_once(*b, slots("job", 1'000))), Errc::busy);
}

// --- mysql-row: the number is the row that is locked

TEST_P(MysqlSlots, ANumberIsThatOfTheRowThatIsLocked) {
  if (!is_row()) return;
  const auto unlocked = [&] {
    return server->ask("SELECT slot FROM dlock_keys WHERE slot > 0 FOR UPDATE SKIP LOCKED");
  };
  auto one = hold(*a, slots("job", 3));
  auto two = hold(*b, slots("job", 3));
  EXPECT_EQ(two->slot(), 2u);
  EXPECT_EQ(unlocked(), "3");
  EXPECT_TRUE(release(*one));
  EXPECT_EQ(unlocked(), "1\n3");
  one = hold(*b, slots("job", 3));
  EXPECT_EQ(one->slot(), 1u);
  EXPECT_EQ(unlocked(), "3");
}

// Its row lock has ended with its session.
TEST_P(MysqlSlots, TheNumberOfACommandThatMayStillRunIsNotFree) {
  if (!is_row()) return;
  constexpr Millis kTtl{20'000};
  const auto wanted = [&] { return request("job", Mode::slots, 3, kTtl); };
  for (const bool is_elsewhere : {false, true}) {
    SCOPED_TRACE(is_elsewhere);
    auto one = hold(*a, wanted());
    auto two = hold(*a, wanted());
    // As from another machine, where nobody can tell whether its processes are alive.
    if (is_elsewhere) server->ask("UPDATE dlock_locks SET record = REPLACE(record, 'life', 'l')");
    kill_session(session_of("slot = 1"));
    ASSERT_TRUE(eventually([&] { return session_of("slot = 1") == "NULL"; }));
    EXPECT_TRUE(release(*two));

    std::vector<std::unique_ptr<Lease>> others;
    EXPECT_LT(time_of([&] {
                others.push_back(hold(*b, wanted()));
                others.push_back(hold(*b, wanted()));
              }),
              kTtl / 2);
    EXPECT_EQ(others[0]->slot(), 2u);
    EXPECT_EQ(others[1]->slot(), 3u);
    EXPECT_EQ(code_of(try_once(*b, wanted())), Errc::busy);
    const auto holders = inspect(*b, "job").holders;
    EXPECT_TRUE(std::any_of(holders.begin(), holders.end(), [&](const LockInfo::Holder& holder) {
      return holder.owner.id == one->owner_id() && holder.slot == 1u;
    }));

    Waiting waiting(client(), wanted());
    EXPECT_TRUE(waiting.blocked());
    EXPECT_FALSE(waiting.done(200));
    EXPECT_EQ(code_of(release(*one)), Errc::lost);
    const auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->slot(), 1u);
    EXPECT_TRUE(release(*next));
    for (const auto& other : others) EXPECT_TRUE(release(*other));
  }
}

// Also if nobody wants so many that one has to wait for it.
TEST_P(MysqlSlots, TheNumberOfACommandOfWhoseEndNobodyKnowsIsFreeAfterItsTtl) {
  if (!is_row()) return;
  constexpr Millis kTtl{3'000};
  auto one = hold(*a, request("job", Mode::slots, 2, kTtl));
  server->ask("UPDATE dlock_locks SET record = REPLACE(record, 'life', 'l')");
  kill_session(session_of("slot = 1"));
  ASSERT_TRUE(eventually([&] { return session_of("slot = 1") == "NULL"; }));
  const Deadline begun = Clock::now();
  auto two = hold(*b, slots("job", 2));
  EXPECT_EQ(two->slot(), 2u);
  EXPECT_EQ(inspect(*b, "job").holders.size(), 2u);
  EXPECT_TRUE(eventually([&] { return inspect(*b, "job").holders.size() == 1; }));
  EXPECT_GE(Clock::now() - begun, kTtl);
  EXPECT_TRUE(release(*two));
  two = hold(*b, slots("job", 2));
  EXPECT_EQ(two->slot(), 1u);
  EXPECT_TRUE(release(*two));
  EXPECT_TRUE(rows_become(0));
}

}  // namespace
}  // namespace dlock::test
