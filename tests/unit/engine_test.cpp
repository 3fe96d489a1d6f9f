// The small pieces of the engine.  What they do together is tested by tests/cli/.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/describe.hpp"
#include "engine/grant.hpp"
#include "engine/link.hpp"
#include "engine/outcome.hpp"
#include "engine/run.hpp"

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
  full.owner = {.host = "web-3.example.net", .pid = 4121, .user = "app", .command = "/srv/cron.sh"};
  EXPECT_EQ(holders_in_words(held_by({full})), "app on web-3.example.net, pid 4121 (cron.sh)");
  EXPECT_EQ(holders_in_words(held_by({full, full, full})),
            "app on web-3.example.net, pid 4121 (cron.sh) and 2 more");
  EXPECT_EQ(holders_in_brief(held_by({full})), "web-3 pid 4121");
  full.owner.host = "10.0.0.7";
  EXPECT_EQ(holders_in_brief(held_by({full, full})), "10.0.0.7 pid 4121 and 1 more");
  LockInfo::Holder foreign;
  foreign.foreign = "flock";
  foreign.owner.pid = 7;
  EXPECT_EQ(holders_in_words(held_by({foreign})), "pid 7 (flock)");
  EXPECT_EQ(holders_in_words(held_by({LockInfo::Holder{}})), "an unknown holder");
  EXPECT_EQ(holders_in_words(held_by({})), "an unknown holder");
}

TEST(Grants, AreVariablesWithALineForEach) {
  const Grant one{.key = "a", .token = "1f", .fence = 7, .slot = 2};
  const Grant other{.key = "b", .token = "2f"};
  using Variables = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(grant_variables(std::vector{one, other}), (Variables{{"DLOCK_KEY", "a"},
                                                                 {"DLOCK_KEYS", "a\nb"},
                                                                 {"DLOCK_TOKEN", "1f"},
                                                                 {"DLOCK_TOKENS", "1f\n2f"},
                                                                 {"DLOCK_FENCE", "7"},
                                                                 {"DLOCK_FENCES", "7\n"},
                                                                 {"DLOCK_SLOT", "2"}}));
  EXPECT_EQ(grant_variables(std::vector{other}), (Variables{{"DLOCK_KEY", "b"},
                                                            {"DLOCK_KEYS", "b"},
                                                            {"DLOCK_TOKEN", "2f"},
                                                            {"DLOCK_TOKENS", "2f"},
                                                            {"DLOCK_FENCE", ""},
                                                            {"DLOCK_FENCES", ""},
                                                            {"DLOCK_SLOT", ""}}));
}

TEST(Describe, NamesAFewKeys) {
  const std::vector<std::string> keys{"a", "b", "c", "d", "e"};
  const auto first = [&](std::size_t count) { return keys_in_words(std::span(keys).first(count)); };
  EXPECT_EQ(first(1), "\"a\"");
  EXPECT_EQ(first(2), "\"a\" and \"b\"");
  EXPECT_EQ(first(3), "\"a\", \"b\" and \"c\"");
  EXPECT_EQ(first(4), "\"a\", \"b\" and 2 more");
  EXPECT_EQ(first(5), "\"a\", \"b\" and 3 more");
}

TEST(Describe, ShowsNothingThatMovesTheCursor) {
  LockInfo::Holder hostile;
  hostile.owner = {.host = "\x1b[2Jweb\n", .pid = 1, .command = std::string(10'000, 'x') + "\a"};
  const std::string shown = holders_in_words(held_by({hostile}));
  EXPECT_EQ(shown.find_first_of("\x1b\n\a"), std::string::npos);
  EXPECT_LT(shown.size(), 300u);
}

TEST(Describe, TellsForHowLong) {
  EXPECT_EQ(held_in_words("a on h, pid 1", Millis{130'000}), "held by a on h, pid 1, for 2m10s");
  EXPECT_EQ(held_in_words("a on h, pid 1", std::nullopt), "held by a on h, pid 1");
}

TEST(Link, CarriesMessagesBothWaysAndADescriptor) {
  auto link = make_link();
  ASSERT_TRUE(link);
  LauncherEnd launcher(std::move(link->launcher));
  SupervisorEnd supervisor(std::move(link->supervisor));
  EXPECT_FALSE(launcher.receive());
  EXPECT_FALSE(launcher.closed());

  EXPECT_TRUE(launcher.send({ToSupervisor::Kind::signal, 15, true}));
  EXPECT_TRUE(launcher.send({ToSupervisor::Kind::go}));
  const auto signal = supervisor.receive();
  ASSERT_TRUE(signal && signal->kind == ToSupervisor::Kind::signal);
  EXPECT_EQ(signal->signal, 15);
  EXPECT_TRUE(signal->from_terminal);
  const auto go = supervisor.receive();
  ASSERT_TRUE(go && go->kind == ToSupervisor::Kind::go);

  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  LockInfo::Holder holder{.owner = {.command = std::string(5'000, 'h')}, .held = Millis{7}};
  holder.owner.label = std::string(5'000, 'l');
  LockInfo info = held_by({holder});
  info.waiter_count = 2;
  EXPECT_TRUE(supervisor.send({ToLauncher::Kind::blocked, Blocked::by(3, info)}));
  EXPECT_TRUE(supervisor.send({ToLauncher::Kind::lock_fds}, std::array{null.get(), 0}));
  EXPECT_TRUE(supervisor.send({ToLauncher::Kind::lock_fds}, std::array{null.get()}));
  EXPECT_TRUE(supervisor.send({ToLauncher::Kind::granted}));
  std::vector<Fd> lock_fds;
  const auto blocked = launcher.receive(&lock_fds);
  ASSERT_TRUE(blocked && blocked->kind == ToLauncher::Kind::blocked);
  EXPECT_EQ(std::string(blocked->blocked.label.data()), std::string(1'024, 'l'));
  EXPECT_EQ(blocked->blocked.key, 3u);
  EXPECT_EQ(blocked->blocked.held(), Millis{7});
  EXPECT_EQ(blocked->blocked.waiting, 2);
  EXPECT_TRUE(lock_fds.empty());
  for (const auto kind :
       {ToLauncher::Kind::lock_fds, ToLauncher::Kind::lock_fds, ToLauncher::Kind::granted}) {
    const auto message = launcher.receive(&lock_fds);
    ASSERT_TRUE(message && message->kind == kind);
  }
  ASSERT_EQ(lock_fds.size(), 3u);
  for (const Fd& fd : lock_fds) EXPECT_GE(fcntl(fd.get(), F_GETFD), 0);
}

TEST(Link, NoticesTheEndOfTheOtherSide) {
  auto link = make_link();
  ASSERT_TRUE(link);
  LauncherEnd launcher(std::move(link->launcher));
  link->supervisor.reset();
  EXPECT_FALSE(launcher.receive());
  EXPECT_TRUE(launcher.closed());
  EXPECT_TRUE(launcher.send({ToSupervisor::Kind::go}));  // must not raise SIGPIPE
}

TEST(Link, AMessageThatWasSentBeforeTheEndArrives) {
  auto link = make_link();
  ASSERT_TRUE(link);
  LauncherEnd launcher(std::move(link->launcher));
  {
    SupervisorEnd supervisor(std::move(link->supervisor));
    EXPECT_TRUE(supervisor.send({ToLauncher::Kind::granted}));
    EXPECT_TRUE(launcher.send({ToSupervisor::Kind::signal, 2, false}));  // never read
  }
  EXPECT_TRUE(launcher.receive());
  EXPECT_FALSE(launcher.receive());
  EXPECT_TRUE(launcher.closed());
}

TEST(Link, NeverBlocksAndTellsWhatDoesNotArrive) {
  auto link = make_link();
  ASSERT_TRUE(link);
  SupervisorEnd supervisor(std::move(link->supervisor));
  bool arrives = true;
  for (int i = 0; i < 100'000; ++i) arrives = supervisor.send({ToLauncher::Kind::granted});
  EXPECT_FALSE(arrives);
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
