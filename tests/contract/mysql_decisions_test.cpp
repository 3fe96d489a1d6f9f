// Two places decide whether a lock can be granted: the server, by the text of attempt(), and the
// client, by the rows (State), which tells a waiter for what to wait.  If they disagreed, a waiter
// would wait for nothing.  So both decide about the same rows, at random.  On a cluster the text
// says which rows are over, and no session has a mark: that needs no cluster.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "backends/mysql/state.hpp"
#include "backends/mysql/statements.hpp"
#include "mysql_fixture.hpp"

namespace dlock::test {
namespace {

using mysql::Statements;
using Is = mysql::State::Decision::Kind;

class MysqlDecisions : public MysqlTest {
 protected:
  // One row of the table of locks, of a session that is there or not.
  struct Entry {
    bool waits = false;
    Mode mode = Mode::exclusive;
    unsigned slots = 1;
    bool present = false;
    bool expired = false;
  };

  void compare(bool on_cluster);
  int among(int most) { return std::uniform_int_distribution<int>(0, most - 1)(random_); }
  Mode any_mode() { return std::array{Mode::exclusive, Mode::shared, Mode::slots}[among(3)]; }
  unsigned slots_of(Mode mode) { return mode == Mode::slots ? 1U + among(3) : 1U; }

  std::vector<Entry> any_entries() {
    std::vector<Entry> out;
    const Mode held = any_mode();
    const unsigned slots = slots_of(held);
    const int holders = among(held == Mode::exclusive ? 2 : 4);
    for (int i = 0; i < holders; ++i) {
      out.push_back({false, held, slots, among(2) == 0, among(3) == 0});
    }
    for (int i = among(4); i > 0; --i) {
      const Mode mode = any_mode();
      out.push_back({true, mode, slots_of(mode), among(3) > 0, false});
    }
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

  // Rows with the ids 1, 2, ... and a session that has the marks of those that are there.
  std::string rows_of(const std::vector<Entry>& entries) const {
    const std::string number = std::to_string(static_cast<int>(method_number()));
    std::string text = "DELETE FROM dlock_locks; ";
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Entry& it = entries[i];
      const std::string owner = "o" + std::to_string(i);
      if (it.present) {
        text += std::string("DO GET_LOCK('dlock.") + (it.waits ? "w." : "h.") + owner + "', 0); ";
      }
      const bool sole = !it.waits && it.mode == Mode::exclusive;
      text +=
          "INSERT INTO dlock_locks (id, method, name, kind, sole, slot, owner, mode, slots, "
          "fence, since, expires_at, record) VALUES (" +
          std::to_string(i + 1) + ", " + number + ", 'job', " + (it.waits ? "1" : "0") + ", " +
          (sole ? "1" : "NULL") + ", 0, '" + owner + "', " +
          std::to_string(static_cast<int>(it.mode)) + ", " + std::to_string(it.slots) +
          ", 0, UTC_TIMESTAMP(6), " +
          (it.waits     ? "NULL"
           : it.expired ? "UTC_TIMESTAMP(6) - INTERVAL 1 SECOND"
                        : "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR") +
          ", ''); ";
    }
    return text;
  }

  std::mt19937 random_{std::random_device{}()};
};

INSTANTIATE_TEST_SUITE_P(, MysqlDecisions, testing::Values("table", "version"), mysql_name);

TEST_P(MysqlDecisions, OfServerAndClientAreTheSame) { compare(false); }
TEST_P(MysqlDecisions, OfServerAndClientAreTheSameOnACluster) { compare(true); }

void MysqlDecisions::compare(bool on_cluster) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  make_tables();
  auto of_root = std::make_shared<mysql::Place>(*place());
  of_root->user = "root";
  of_root->password.clear();
  of_root->socket = server->socket_path();
  Statements say(method_number(), "dlock_", "job");
  const auto others = session_at(of_root);
  int granted = 0;
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const auto entries = any_entries();
    std::string is_over = "id IN (0";
    for (std::size_t k = 0; k < entries.size(); ++k) {
      if (!entries[k].present) is_over += ", " + std::to_string(k + 1);
    }
    if (on_cluster) say.set_marks(mysql::Marks::of_cluster(is_over + ")"));
    const auto us = session_at(place());
    ASSERT_TRUE(us->ask(say.create_row(), soon(), Cancel()).ok());
    const std::string rows = "DO RELEASE_ALL_LOCKS(); " + rows_of(entries) + "DO 0";
    const auto put = others->ask(rows, soon(), Cancel());
    ASSERT_TRUE(put.ok()) << put.error->message;
    // As a waiter in the queue, or as a client that is not in it.
    std::size_t own = static_cast<std::size_t>(among(static_cast<int>(entries.size()) + 1));
    if (own > 0 && !entries[own - 1].waits) own = 0;
    Request wanted = request("job", any_mode());
    wanted.slots = slots_of(wanted.mode);
    if (own > 0) {
      wanted.mode = entries[own - 1].mode;
      wanted.slots = entries[own - 1].slots;
    }
    const auto seen = us->ask(say.look(true), soon(), Cancel());
    ASSERT_TRUE(seen.ok()) << seen.error->message;
    const mysql::State state(mysql::parties_of(seen.answers.back()));
    const auto decision = state.decide(wanted, own);
    const auto tried = us->ask(say.attempt(wanted, own), soon(), Cancel());
    ASSERT_TRUE(tried.ok()) << tried.error->message;
    const auto out = mysql::attempted(tried.answers).outcome;
    EXPECT_TRUE(out.fit && out.has_row);
    EXPECT_EQ(out.won != 0, decision.kind == Is::take)
        << mode_name(wanted.mode) << ' ' << wanted.slots << " as " << own << " of:\n"
        << rows;
    granted += out.won != 0 ? 1 : 0;
  }
  EXPECT_GT(granted, 10);
  RecordProperty("granted", granted);
}

}  // namespace
}  // namespace dlock::test
