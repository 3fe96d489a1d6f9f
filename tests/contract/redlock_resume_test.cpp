// A lease that one process has let go and another picks up, on a majority of several servers.
#include <gtest/gtest.h>

#include <regex>

#include "redlock_fixture.hpp"

namespace dlock::test {
namespace {

class RedlockResume : public RedlockTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    start(3);
  }
  static constexpr Mask kAll = 0b111;
  static std::vector<Request> of_each_mode() {
    return {unkept(request("job")), unkept(shared("job")), unkept(slots("job", 2))};
  }
  /// Acquires it and lets it go, with the connections, as a process that exits.
  static std::string let_go(std::unique_ptr<Backend> backend, const Request& wanted) {
    const auto lease = hold(*backend, wanted);
    return lease ? lease->owner_id() : "";
  }
  std::string let_go(const Request& wanted) const { return let_go(client(), wanted); }
  /// Renews it, and lets it go at once.
  Result<void> renew_once(const std::string& id) const {
    const auto lease = pick_up(*client(), id);
    return lease ? renew(*lease) : Error{Errc::invalid, "not picked up"};
  }
  Mask having_the_lock() const { return having(lock_of("job"), kAll); }
  /// The same list, in another order.
  std::unique_ptr<Backend> from_the_end() const {
    return connect("127.0.0.1:" + std::to_string(servers[2].port()) +
                   ",127.0.0.1:" + std::to_string(servers[0].port()) +
                   ",127.0.0.1:" + std::to_string(servers[1].port()));
  }
  std::string record(unsigned node, const Request& wanted) const {
    const std::string name = names("job").owner;
    return wanted.mode == Mode::exclusive ? servers[node].command("GET", name)
                                          : servers[node].command("HGET", name, wanted.owner.id);
  }
  /// What the servers have agreed on, as their records have it: the same on each.
  bool is_agreed_on(std::optional<std::uint64_t> fence, const Request& wanted) const {
    for (const unsigned node : members(kAll)) {
      const std::string text = record(node, wanted);
      if (text.find("\"fence\":" + std::to_string(fence.value_or(0)) + '}') == std::string::npos) {
        std::cerr << node << ": " << text << '\n';
        return false;
      }
    }
    return true;
  }
};

TEST_F(RedlockResume, EachServerHasWhatNobodyKeepsWhenItIsGranted) {
  for (int i = 0; i < 20; ++i) {
    for (const Request& wanted : of_each_mode()) {
      auto backend = client();
      auto lease = hold(*backend, wanted);
      ASSERT_TRUE(lease);
      const auto fence = lease->fence();
      lease.reset();
      backend.reset();
      EXPECT_EQ(having_the_lock(), kAll);
      EXPECT_TRUE(is_agreed_on(fence, wanted));
      flush(kAll);
    }
  }
}

}  // namespace
}  // namespace dlock::test
