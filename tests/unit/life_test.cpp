#include "util/life.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "util/poll.hpp"

namespace dlock::util {
namespace {

TEST(Life, EndsWithTheLastCopy) {
  LifeToken token = make_life_token();
  ASSERT_TRUE(token.fd);
  const LifeWatch watch = watch_life(token.mark);
  EXPECT_EQ(watch.life, Life::alive);
  ASSERT_TRUE(watch.ends);
  Fd copy(dup(token.fd.get()));
  token.fd.reset();
  EXPECT_EQ(watch_life(token.mark).life, Life::alive);
  EXPECT_FALSE(wait_readable(watch.ends.get(), Deadline{}));
  copy.reset();
  EXPECT_TRUE(wait_readable(watch.ends.get(), after(Clock::now(), Millis{5'000})));
  EXPECT_EQ(watch_life(token.mark).life, Life::ended);
}

TEST(Life, EndsWhenTheProcessIsKilled) {
  LifeToken token = make_life_token();
  ASSERT_TRUE(token.fd);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  token.fd.reset();
  const LifeWatch watch = watch_life(token.mark);
  EXPECT_EQ(watch.life, Life::alive);
  kill(child, SIGKILL);
  EXPECT_TRUE(wait_readable(watch.ends.get(), after(Clock::now(), Millis{5'000})));
  EXPECT_EQ(watch_life(token.mark).life, Life::ended);
  waitpid(child, nullptr, 0);
}

TEST(Life, IsSeenHoweverManyLook) {
  const LifeToken token = make_life_token();
  std::vector<LifeWatch> watches;
  for (int i = 0; i < 140; ++i) {
    watches.push_back(watch_life(token.mark));
    ASSERT_EQ(watches.back().life, Life::alive) << i;
  }
}

TEST(Life, OfAnotherMachineIsUnknown) {
  const LifeToken token = make_life_token();
  const auto id_at = token.mark.rfind('/');
  ASSERT_NE(id_at, std::string::npos);
  const auto life_of = [](const std::string& mark) { return watch_life(mark).life; };
  EXPECT_EQ(life_of(""), Life::unknown);
  EXPECT_EQ(life_of("x" + token.mark), Life::unknown);
  EXPECT_EQ(life_of(token.mark + "x"), Life::unknown);
  EXPECT_EQ(life_of(token.mark.substr(id_at + 1)), Life::unknown);
  EXPECT_EQ(life_of("00000000-0000-0000-0000-000000000000/1" + token.mark.substr(id_at)),
            Life::unknown);
}

}  // namespace
}  // namespace dlock::util
