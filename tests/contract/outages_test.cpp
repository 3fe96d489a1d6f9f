// Each operation while its service has a fault, and when that is over: what a backend promises then
// is the same for all (core/backend.hpp).
#include <gtest/gtest.h>

#include <map>

#include "client.hpp"
#include "fixtures.hpp"

namespace dlock::test {
namespace {

constexpr Millis kShortTimeout{600};
constexpr int kShort = 400;  // shorter

// What goes on all the same.
struct GoesOn {
  bool acquire = false;
  bool renew = false;
  bool release = false;
  bool inspect = false;
  bool force_release = false;
  bool complete = false;
};

class Outages : public testing::TestWithParam<ServiceKind> {
 protected:
  void meet(Fault fault, const GoesOn& goes_on) {
    survives_ = service_->survives(fault);
    ASSERT_NO_FATAL_FAILURE(prepare());
    Waiting waiter(service_->connect(), request("waited for"));
    ASSERT_TRUE(waiter.blocked());
    service_->provoke(fault);
    expect_meanwhile(goes_on);
    EXPECT_FALSE(waiter.done(0));
    service_->mend(fault);
    expect_afterwards();
    // Who waited gets it, and then nothing is left.
    (void)patiently([&] { return lease("waited for").release(in(kShort), Cancel()); });
    auto next = waiter.lease();
    ASSERT_TRUE(next);
    EXPECT_TRUE(release(*next));
    leases_.clear();
    EXPECT_TRUE(eventually([&] {
      const auto left = client()->list("", soon());
      return left && left.value().empty();
    }));
  }

 private:
  void prepare();
  void expect_meanwhile(const GoesOn& goes_on);
  void expect_afterwards();

  std::unique_ptr<Backend> client() { return service_->connect(kShortTimeout); }
  Lease& lease(const std::string& key) { return *leases_.at(key); }
  Result<bool> force_release() {
    return client()->force_release("broken", lease("broken").owner_id(), {"test"}, in(kShort));
  }
  Result<void> complete() {
    return lease("done").complete({"", Millis{3'600'000}}, in(kShort), Cancel());
  }
  Result<std::uint64_t> number() { return client()->take_numbers("counter", 1, in(kShort)); }

  // Of a lease: what it is told while the service cannot be used, and otherwise.
  template <class T>
  void expect(const Result<T>& result, bool goes_on) const {
    const bool is_lost = !result && result.error().code == Errc::lost;
    if (is_lost && !survives_) return;
    EXPECT_EQ(result.has_value(), goes_on) << said(result);
    if (!result) {
      EXPECT_EQ(result.error().code, Errc::unreachable) << said(result);
    }
  }
  template <class T>
  static std::string said(const Result<T>& result) {
    return result ? "it went well" : result.error().message;
  }

  const std::unique_ptr<Service> service_ = GetParam().start();
  const std::unique_ptr<Backend> holder_ = service_->connect();
  const bool remembers_ = service_->traits().remembers;
  bool survives_ = true;
  std::map<std::string, std::unique_ptr<Lease>> leases_;
  std::uint64_t last_number_ = 0;
};

void Outages::prepare() {
  for (const char* key : {"renewed", "released", "broken", "waited for"}) {
    ASSERT_TRUE(leases_[key] = hold(*holder_, request(key)));
  }
  if (!remembers_) return;
  ASSERT_TRUE(leases_["done"] = begin(*holder_, "done"));
  last_number_ = holder_->take_numbers("counter", 1, soon()).value();
}

// A release makes room for another client, so it comes last.
void Outages::expect_meanwhile(const GoesOn& goes_on) {
  auto acquired = client()->acquire(request("free"), {.until = in(0)});
  expect(acquired, goes_on.acquire);
  if (acquired) leases_["free"] = std::move(*acquired);
  const auto seen = client()->inspect("renewed", in(kShort));
  expect(seen, goes_on.inspect);
  if (seen && survives_) {
    EXPECT_EQ(seen.value().holders.size(), 1u);
  }
  expect(force_release(), goes_on.force_release);
  if (remembers_) expect(number(), goes_on.acquire);
  const Deadline valid_until = lease("renewed").valid_until();
  expect(lease("renewed").renew(in(kShort), Cancel()), goes_on.renew);
  if (survives_) {
    EXPECT_EQ(lease("renewed").valid_until() > valid_until, goes_on.renew);
  }
  expect(lease("released").release(in(kShort), Cancel()), goes_on.release);
  if (remembers_) expect(complete(), goes_on.complete);
}

void Outages::expect_afterwards() {
  expect(patiently([&] { return lease("renewed").renew(in(kShort), Cancel()); }), true);
  (void)patiently([&] { return force_release(); });
  EXPECT_EQ(code_of(lease("broken").renew(soon(), Cancel())), Errc::lost);
  // Whether a call without an answer has done it, its caller cannot know.
  for (const char* key : {"released", "renewed"}) {
    (void)patiently([&] { return lease(key).release(in(kShort), Cancel()); });
  }
  for (const char* key : {"released", "renewed", "broken"}) {
    EXPECT_TRUE(eventually([&] { return is_free_for(*client(), request(key)); })) << key;
  }
  if (leases_.contains("free")) {
    expect(release(lease("free")), true);
  }
  if (!remembers_) return;
  if (patiently([&] { return complete(); })) {
    EXPECT_TRUE(find(*client(), "done"));
  } else {
    EXPECT_FALSE(survives_);
  }
  const auto next = patiently([&] { return number(); });
  ASSERT_TRUE(next) << said(next);
  if (survives_) {
    EXPECT_GT(next.value(), last_number_);
  }
}

TEST_P(Outages, TheServiceIsKilledAndStartsAgain) { meet(Fault::killed, {}); }
TEST_P(Outages, TheServiceIsStoppedForAMoment) { meet(Fault::stopped, {}); }
INSTANTIATE_TEST_SUITE_P(, Outages, testing::ValuesIn(server_kinds()),
                         [](const auto& it) { return it.param.name; });

// What the administrator of a database does.
using SqlOutages = Outages;
TEST_P(SqlOutages, AllSessionsAreEnded) {
  meet(Fault::sessions_ended, {.acquire = true,
                               .renew = true,
                               .release = true,
                               .inspect = true,
                               .force_release = true,
                               .complete = true});
}
TEST_P(SqlOutages, NoConnectionIsLeft) {
  meet(Fault::full, {.renew = true, .release = true, .complete = true});
}
TEST_P(SqlOutages, TheServerTakesNoWrites) { meet(Fault::read_only, {.inspect = true}); }
INSTANTIATE_TEST_SUITE_P(, SqlOutages, testing::ValuesIn(sql_kinds()),
                         [](const auto& it) { return it.param.name; });

}  // namespace
}  // namespace dlock::test
