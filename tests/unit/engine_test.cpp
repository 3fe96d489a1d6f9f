// The small pieces of the engine.  What they do together is tested by tests/cli/.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/describe.hpp"
#include "engine/lease_end.hpp"
#include "engine/link.hpp"
#include "engine/outcome.hpp"
#include "engine/run.hpp"
#include "util/poll.hpp"

namespace dlock {
namespace {

LockInfo held_by(std::vector<LockInfo::Holder> holders) {
  LockInfo info;
  info.key = "job";
  info.holders = std::move(holders);
  return info;
}

TEST(Describe, NamesTheHolderAsFarAsItIsKnown) {
  LockInfo::Holder full;
  full.owner = {.host = "web-3", .pid = 4121, .command = "./cron.sh"};
  EXPECT_EQ(holders_in_words(held_by({full})), "web-3 pid 4121 (./cron.sh)");
  EXPECT_EQ(holders_in_words(held_by({full, full, full})), "web-3 pid 4121 (./cron.sh) and 2 more");
  full.owner.label = "build 7";
  EXPECT_EQ(holders_in_words(held_by({full})), "web-3 pid 4121 (./cron.sh, build 7)");
  LockInfo::Holder foreign;
  foreign.foreign = "flock";
  foreign.owner.pid = 7;
  EXPECT_EQ(holders_in_words(held_by({foreign})), "pid 7 (flock)");
  EXPECT_EQ(holders_in_words(held_by({LockInfo::Holder{}})), "an unknown holder");
  EXPECT_EQ(holders_in_words(held_by({})), "an unknown holder");
}

TEST(Describe, ShowsNothingThatMovesTheCursor) {
  LockInfo::Holder hostile;
  hostile.owner = {.host = "\x1b[2Jweb\n", .pid = 1, .command = std::string(10'000, 'x') + "\a"};
  const std::string shown = holders_in_words(held_by({hostile}));
  EXPECT_EQ(shown.find_first_of("\x1b\n\a"), std::string::npos);
  EXPECT_LT(shown.size(), 300u);
}

TEST(Describe, TellsForHowLongAndHowManyWait) {
  EXPECT_EQ(held_in_words("h pid 1", Millis{130'000}, 3), "held by h pid 1 for 2m10s, 3 waiting");
  EXPECT_EQ(held_in_words("h pid 1", std::nullopt, std::nullopt), "held by h pid 1");
  EXPECT_EQ(held_in_words("h pid 1", std::nullopt, 0), "held by h pid 1");
}

TEST(Link, CarriesMessagesBothWaysAndADescriptor) {
  auto link = make_link();
  ASSERT_TRUE(link);
  FrontEnd front(std::move(link->front));
  SupervisorEnd supervisor(std::move(link->supervisor));
  EXPECT_FALSE(front.receive());
  EXPECT_FALSE(front.closed());

  front.send(to_supervisor::Signal{15, true});
  front.send(to_supervisor::Go{});
  const auto signal = supervisor.receive();
  ASSERT_TRUE(signal && std::holds_alternative<to_supervisor::Signal>(*signal));
  EXPECT_EQ(std::get<to_supervisor::Signal>(*signal).number, 15);
  EXPECT_TRUE(std::get<to_supervisor::Signal>(*signal).from_terminal);
  const auto go = supervisor.receive();
  ASSERT_TRUE(go && std::holds_alternative<to_supervisor::Go>(*go));

  supervisor.send(to_front::Blocked{std::string(5'000, 'h'), Millis{7}, 2});
  supervisor.send(to_front::Leased{Fd(open("/dev/null", O_RDONLY | O_CLOEXEC))});
  supervisor.send(to_front::Granted{Fd(open("/dev/null", O_RDONLY | O_CLOEXEC))});
  supervisor.send(to_front::Ended{79, true});
  const auto blocked = front.receive();
  ASSERT_TRUE(blocked && std::holds_alternative<to_front::Blocked>(*blocked));
  EXPECT_EQ(std::get<to_front::Blocked>(*blocked).holder, std::string(1'024, 'h'));
  EXPECT_EQ(std::get<to_front::Blocked>(*blocked).held, Millis{7});
  EXPECT_EQ(std::get<to_front::Blocked>(*blocked).waiting, 2u);
  const auto leased = front.receive();
  ASSERT_TRUE(leased && std::holds_alternative<to_front::Leased>(*leased));
  EXPECT_GE(fcntl(std::get<to_front::Leased>(*leased).alarm.get(), F_GETFD), 0);
  const auto granted = front.receive();
  ASSERT_TRUE(granted && std::holds_alternative<to_front::Granted>(*granted));
  EXPECT_GE(fcntl(std::get<to_front::Granted>(*granted).witness.get(), F_GETFD), 0);
  const auto ended = front.receive();
  ASSERT_TRUE(ended && std::holds_alternative<to_front::Ended>(*ended));
  EXPECT_EQ(std::get<to_front::Ended>(*ended).exit_status, 79);
  EXPECT_TRUE(std::get<to_front::Ended>(*ended).left_behind);
}

TEST(Link, NoticesTheEndOfTheOtherSide) {
  auto link = make_link();
  ASSERT_TRUE(link);
  FrontEnd front(std::move(link->front));
  link->supervisor.reset();
  EXPECT_FALSE(front.receive());
  EXPECT_TRUE(front.closed());
  front.send(to_supervisor::Go{});  // must not raise SIGPIPE
}

TEST(Link, HearsTheLastWordOfOneThatDidNotHearOurs) {
  auto link = make_link();
  ASSERT_TRUE(link);
  FrontEnd front(std::move(link->front));
  {
    SupervisorEnd supervisor(std::move(link->supervisor));
    supervisor.send(to_front::Ended{4, false});
    front.send(to_supervisor::Signal{2, false});  // never read
  }
  const auto ended = front.receive();
  ASSERT_TRUE(ended && std::holds_alternative<to_front::Ended>(*ended));
  EXPECT_EQ(std::get<to_front::Ended>(*ended).exit_status, 4);
  EXPECT_FALSE(front.receive());
  EXPECT_TRUE(front.closed());
}

TEST(Link, NeverBlocks) {
  auto link = make_link();
  ASSERT_TRUE(link);
  SupervisorEnd supervisor(std::move(link->supervisor));
  for (int i = 0; i < 100'000; ++i) supervisor.send(to_front::Blocked{"nobody reads this", {}, {}});
}

// What front and supervisor sleep by: margins of 1 s, as a --kill-after of 1 s makes them.
class LeaseEndTest : public testing::Test {
 protected:
  static bool rings(int alarm) { return util::wait_readable(alarm, Clock::now()); }

  Link link_ = make_link().value();
  const Margins margins_{Millis{1'000}};
};

TEST_F(LeaseEndTest, ItsAlarmRingsWhenTheEndOfTheTreeMustBegin) {
  const Deadline granted = Clock::now();
  const LeaseEnd end(*link_.page, margins_, granted + Millis{1'050});
  EXPECT_EQ(end.get(), granted + Millis{1'050});
  EXPECT_FALSE(rings(end.alarm_fd()));
  EXPECT_TRUE(util::wait_readable(end.alarm_fd(), granted + Millis{10'000}));
  EXPECT_GE(Clock::now(), margins_.term_at(end.get()));
  EXPECT_LT(Clock::now(), granted + Millis{9'000});
}

TEST_F(LeaseEndTest, ARenewalMovesItForWhoeverHasACopyOfTheAlarm) {
  LeaseEnd end(*link_.page, margins_, Clock::now() + Millis{1'020});
  const Fd copy(dup(end.alarm_fd()));
  ASSERT_TRUE(util::wait_readable(copy.get(), kNever));
  end.move_to(Clock::now() + Millis{60'000});
  EXPECT_FALSE(rings(copy.get()));
  EXPECT_GT(link_.page->lease_end(), Clock::now() + Millis{50'000});
  end.move_to(Clock::now());
  EXPECT_TRUE(rings(copy.get()));
}

TEST_F(LeaseEndTest, ALockThatDoesNotEndHasNoAlarm) {
  const LeaseEnd end(*link_.page, margins_, kNever);
  EXPECT_EQ(end.get(), kNever);
  EXPECT_EQ(end.alarm_fd(), -1);
}

TEST(Outcome, EachErrorHasItsStatus) {
  const auto of = [](Errc code) { return not_acquired({code, "why"}, 9); };
  EXPECT_EQ(of(Errc::busy).exit_status, 9);
  EXPECT_EQ(of(Errc::busy).name, "busy");
  EXPECT_EQ(of(Errc::unreachable).exit_status, exit_status::kUnreachable);
  EXPECT_EQ(of(Errc::denied).exit_status, exit_status::kDenied);
  EXPECT_EQ(of(Errc::conflict).exit_status, exit_status::kUsage);
  EXPECT_EQ(of(Errc::unsupported).exit_status, exit_status::kUsage);
  EXPECT_EQ(of(Errc::invalid).exit_status, exit_status::kUsage);
}

}  // namespace
}  // namespace dlock
