// What one Redis server remembers of jobs that are done: lost replies, late requests, rights, and
// what others have put there.
#include <gtest/gtest.h>

#include "redis_fixture.hpp"

namespace dlock::test {
namespace {

constexpr Millis kLong{24 * 3'600'000};

/// What is said on stderr while `what` runs.
std::string said_by(const std::function<void()>& what) {
  testing::internal::CaptureStderr();
  what();
  return testing::internal::GetCapturedStderr();
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

class RedisOnce : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (!IsSkipped()) put_proxy();
  }
  void put_proxy() { proxy.emplace("127.0.0.1", server->port()); }
  static std::string entry(const std::string& key = "job", const std::string& period = "") {
    return redis::record_key(redis::kDefaultPrefix, {RecordKind::mark, key, period});
  }
  static Result<void> complete(Lease& lease, Deadline deadline = soon()) {
    return lease.complete({"", kLong}, deadline, Cancel());
  }
  void do_job(Backend& backend, const std::string& key = "job", const std::string& period = "") {
    const auto lease = hold(backend, request(key));
    ASSERT_TRUE(lease);
    const auto done = lease->complete({period, kLong}, soon(), Cancel());
    EXPECT_TRUE(done) << done.error().message;
  }
  /// So that the scripts are known, and each request is one.
  void teach_completing() {
    do_job(*a, "teach");
    EXPECT_TRUE(a->forget_mark({"teach", ""}, soon()).value());
    server->command("FLUSHALL");
  }
  bool is_by(const std::string& id) const {
    const auto mark = find(*b);
    return mark && mark->owner.id == id;
  }
  /// A lease whose request to complete is on its way, and comes two seconds after it was sent.
  std::unique_ptr<Lease> complete_late() {
    teach_completing();
    client_of_late = connect_redis(proxy->port());
    auto lease = hold(*client_of_late, request("job"));
    proxy->delay_requests(Millis{2'000});
    EXPECT_EQ(code_of(complete(*lease, in(100))), Errc::unreachable);
    proxy->pass();
    return lease;
  }
  static bool is_completed_by(Monitor& monitor) {
    return eventually([&] {
      const auto commands = monitor.commands();
      return std::find(commands.begin(), commands.end(), "EVALSHA") != commands.end();
    });
  }

  std::optional<Proxy> proxy;
  std::unique_ptr<Backend> client_of_late;
};

// --- replies that are lost, and requests that are late

TEST_F(RedisOnce, ALostReplyIsFoundOutByTheNextCall) {
  teach_completing();
  const auto client = connect_redis(proxy->port());
  const auto lease = hold(*client, request("job"));
  proxy->lose_reply_to("}:done:");
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  EXPECT_EQ(proxy->lost_replies(), 1);
  EXPECT_TRUE(is_by(lease->owner_id()));
  EXPECT_TRUE(is_free_for(*b, request("job")));
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(is_by(lease->owner_id()));
}

TEST_F(RedisOnce, ALostReplyDoesNotTakeTheLockOfTheNextHolder) {
  teach_completing();
  const auto client = connect_redis(proxy->port());
  const auto lease = hold(*client, request("job"));
  proxy->lose_reply_to("}:done:");
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  const auto next = hold(*b, request("job"));
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(release(*next));
}

TEST_F(RedisOnce, ALateRequestIsCarriedOutWhileTheLockIsHeld) {
  const auto lease = complete_late();
  EXPECT_TRUE(eventually([&] { return is_by(lease->owner_id()); }));
  EXPECT_TRUE(complete(*lease));
}

TEST_F(RedisOnce, ALateRequestLeavesNoMarkAfterTheLockWasLost) {
  const auto lease = complete_late();
  EXPECT_TRUE(b->force_release("job", lease->owner_id(), {"test"}, soon()).value());
  const auto next = hold(*b, request("job"));
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  Monitor monitor(*server);
  EXPECT_TRUE(is_completed_by(monitor));
  EXPECT_FALSE(find(*b));
  EXPECT_TRUE(renew(*next));
  EXPECT_TRUE(release(*next));
}

TEST_F(RedisOnce, ALateRequestDoesNotReplaceANewerMark) {
  const auto lease = complete_late();
  EXPECT_TRUE(b->force_release("job", lease->owner_id(), {"test"}, soon()).value());
  const auto next = hold(*b, request("job"));
  EXPECT_TRUE(complete(*next));
  Monitor monitor(*server);
  EXPECT_TRUE(is_completed_by(monitor));
  EXPECT_TRUE(is_by(next->owner_id()));
}

TEST_F(RedisOnce, WhoHasLostTheLockHearsWhoTookIt) {
  const auto lease = hold(*a, request("job"));
  EXPECT_TRUE(
      b->force_release("job", lease->owner_id(), {"root: the disk is full"}, soon()).value());
  const auto done = complete(*lease);
  EXPECT_EQ(code_of(done), Errc::lost);
  EXPECT_NE(done.error().message.find("the disk is full"), std::string::npos);
}

// --- what stands there

TEST_F(RedisOnce, AMarkGoesByItself) {
  const auto lease = hold(*a, request("job"));
  EXPECT_TRUE(lease->complete({"2026-11-22", kLong}, soon(), Cancel()));
  const long long left = std::stoll(server->command("PTTL", entry("job", "2026-11-22")));
  EXPECT_GT(left, (kLong - kPatience).count());
  EXPECT_LE(left, kLong.count());
}

// The second one is remembered for its own time, although the key may stay for that of the first.
TEST_F(RedisOnce, AShorterMarkEndsInTime) {
  do_job(*a);
  const auto lease = hold(*a, request("job"));
  EXPECT_TRUE(lease->complete({"", Millis{1'000}}, soon(), Cancel()));
  EXPECT_TRUE(is_by(lease->owner_id()));
  EXPECT_TRUE(eventually([&] { return !find(*b); }));
  EXPECT_TRUE(b->list_marks("", soon()).value().empty());
  EXPECT_FALSE(b->forget_mark({"job", ""}, soon()).value());
}

TEST_F(RedisOnce, TheLongestTimeIsRemembered) {
  const auto lease = hold(*a, request("job"));
  EXPECT_TRUE(lease->complete({"", kLongestRemembered}, soon(), Cancel()));
  const auto mark = find(*b);
  ASSERT_TRUE(mark);
  EXPECT_GT(mark->left, Millis{90LL * 365 * 24 * 3'600'000});
  EXPECT_TRUE(b->forget_mark({"job", ""}, soon()).value());
  EXPECT_FALSE(find(*b));
}

TEST_F(RedisOnce, AnotherTypeIsAConflictAndNothingIsChanged) {
  server->command("LPUSH", entry(), "theirs");
  const auto found = b->find_mark({"job", ""}, soon());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::conflict);
  EXPECT_NE(found.error().message.find(entry()), std::string::npos) << found.error().message;
  EXPECT_FALSE(b->forget_mark({"job", ""}, soon()));
  EXPECT_TRUE(b->list_marks("", soon()).value().empty());
  EXPECT_EQ(server->command("LRANGE", entry(), "0", "-1"), "theirs");
}

TEST_F(RedisOnce, GarbageIsNoMark) {
  do_job(*b, "good");
  const std::string good = server->command("GET", entry("good"));
  const std::string record = good.substr(good.find('{'));
  for (const std::string& garbage :
       {std::string("1"), std::string("{}"), record, good + '}', good.substr(0, good.size() - 1),
        std::string(100'000, '0'), std::string("1795000000000 {}"), "x " + record, ' ' + record,
        "99999999999999999999 " + record, "-1 " + record}) {
    server->command("SET", entry(), garbage);
    const auto found = b->find_mark({"job", ""}, soon());
    ASSERT_FALSE(found) << garbage;
    EXPECT_EQ(found.error().code, Errc::conflict) << garbage;
    EXPECT_EQ(b->list_marks("", soon()).value().size(), 1u) << garbage;
  }
}

TEST_F(RedisOnce, KeysThatLookLikeMarksAreNone) {
  do_job(*a);
  const std::string good = server->command("GET", entry());
  for (const std::string name :
       {"{dlock:job}:done", "{dlock:job}:done:a_b", "{dlock:job}:done:123456789-1234567",
        "{other:job}:done:", "{dlock:}:done:", "{dlock:job}:done:dlock:job:", "{x}:done:dlock:job:",
        "x{dlock:a}:done:", "{dlock:job}:done::"}) {
    server->command("SET", name, good);
  }
  EXPECT_EQ(b->list_marks("", soon()).value().size(), 1u);
  EXPECT_TRUE(b->list("", soon()).value().empty());
}

TEST_F(RedisOnce, AnyPrefixKeepsMarksOutOfTheListOfLocks) {
  for (const std::string prefix : {"", "dlock:", "{app}", "{app}:", "dlock"}) {
    const auto client = connect_redis(server->port(), prefix);
    for (const std::string key : {"a", "{app}a", "a}b", "{}", "done", "a:done:"}) {
      do_job(*client, key);
      do_job(*client, key, "2026-W47");
      EXPECT_TRUE(find(*client, key)) << prefix << key;
    }
    const auto locks = client->list("", soon());
    ASSERT_TRUE(locks);
    EXPECT_TRUE(locks.value().empty()) << prefix << ": " << locks.value()[0].key;
    EXPECT_EQ(client->list_marks("", soon()).value().size(), 12u) << prefix;
    server->command("FLUSHALL");
  }
}

TEST_F(RedisOnce, ManyMarksAreListedEachOnce) {
  do_job(*a);
  const std::string good = server->command("GET", entry());
  for (int i = 0; i < 2'500; ++i) {
    server->command("SET", entry("k" + std::to_string(10'000 + i)), good);
  }
  const auto marks = b->list_marks("k", soon());
  ASSERT_TRUE(marks);
  EXPECT_EQ(marks.value().size(), 2'500u);
  EXPECT_TRUE(std::is_sorted(marks.value().begin(), marks.value().end(),
                             [](const Mark& x, const Mark& y) { return x.name < y.name; }));
}

// --- a server that refuses

TEST_F(RedisOnce, AServerWithoutMemoryRefusesBeforeTheLockIsGivenUp) {
  const auto lease = hold(*a, request("job"));
  server->command("CONFIG", "SET", "maxmemory", "1");
  const auto done = complete(*lease);
  EXPECT_EQ(code_of(done), Errc::unreachable);
  EXPECT_NE(done.error().message.find("out of memory"), std::string::npos) << done.error().message;
  EXPECT_EQ(server->command("GET", "dlock:job"), lease->owner_id());
  server->command("CONFIG", "SET", "maxmemory", "0");
  EXPECT_FALSE(find(*b));
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(is_by(lease->owner_id()));
}

TEST_F(RedisOnce, AServerThatIsDownOrAReplicaMayComeBack) {
  const auto lease = hold(*a, request("job"));
  server->command("REPLICAOF", "127.0.0.1", "1");
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  server->command("REPLICAOF", "NO", "ONE");
  server->pause();
  EXPECT_EQ(code_of(complete(*lease, in(100))), Errc::unreachable);
  const auto found = hasty()->find_mark({"job", ""}, soon());
  EXPECT_EQ(found.error().code, Errc::unreachable);
  server->resume();
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(is_by(lease->owner_id()));
}

TEST_F(RedisOnce, AUserWithTheRightsOfTheManPageCanDoAllOfIt) {
  server->run(user_with_few_rights("few"));
  const auto few = connect_redis(server->port(), {}, Millis{5'000}, "few:pw@");
  EXPECT_EQ(said_by([&] {
              const auto ready = few->prepare_marks("job", soon());
              EXPECT_TRUE(ready) << ready.error().message;
            }),
            "");
  do_job(*few);
  EXPECT_TRUE(find(*few));
  EXPECT_EQ(few->list_marks("", soon()).value().size(), 1u);
  EXPECT_TRUE(few->forget_mark({"job", ""}, soon()).value());
}

TEST_F(RedisOnce, AUserWhoMayOnlyReadSeesMarks) {
  do_job(*a);
  server->command("ACL", "SETUSER", "reader", "on", ">pw", "%R~*", "-@all", "+getrange", "+time",
                  "+scan");
  const auto reader = connect_redis(server->port(), {}, Millis{5'000}, "reader:pw@");
  EXPECT_TRUE(find(*reader));
  EXPECT_FALSE(find(*reader, "other"));
  EXPECT_EQ(reader->list_marks("", soon()).value().size(), 1u);
  const auto ready = reader->prepare_marks("job", soon());
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::denied);
}

// Found before the job and not after it.
TEST_F(RedisOnce, AUserWhoMayNotWriteMarksIsToldBeforeTheJobIsRun) {
  server->command("ACL", "SETUSER", "locker", "on", ">pw", "+@all", "allchannels", "~dlock:*",
                  "~{dlock:*}:fence", "~{dlock:*}:owner", "~{dlock:*}:queue", "~{dlock:*}:waiter:*",
                  "~{dlock:*}:revoked:*", "~{dlock:*}:void:*", "%R~{dlock:*}:done:*");
  const auto locker = connect_redis(server->port(), {}, Millis{5'000}, "locker:pw@");
  const auto lease = hold(*locker, request("job"));
  ASSERT_TRUE(lease);
  EXPECT_FALSE(find(*locker));
  const auto ready = locker->prepare_marks("job", soon());
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::denied) << ready.error().message;
  EXPECT_EQ(code_of(complete(*lease)), Errc::denied);
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(release(*lease));
  EXPECT_FALSE(find(*b));
}

TEST_F(RedisOnce, PreparingChangesNothing) {
  (void)said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); });
  EXPECT_EQ(server->command("DBSIZE"), "0");
  do_job(*a);
  const std::string before = server->command("GET", entry());
  (void)said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); });
  EXPECT_EQ(server->command("GET", entry()), before);
  EXPECT_EQ(server->command("DBSIZE"), "2");
}

// --- what is kept

TEST_F(RedisOnce, AServerThatSavesNothingIsWarnedOfOnce) {
  const std::string said = said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); });
  EXPECT_EQ(lines_in(said), 1u) << said;
  EXPECT_NE(said.find(std::to_string(server->port())), std::string::npos) << said;
  EXPECT_NE(said.find("appendonly yes"), std::string::npos) << said;
  server->command("CONFIG", "SET", "save", "3600 1");
  EXPECT_EQ(said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); }), "");
  server->command("CONFIG", "SET", "save", "");
  server->command("CONFIG", "SET", "appendonly", "yes");
  EXPECT_EQ(said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); }), "");
}

TEST_F(RedisOnce, AServerThatMayDropKeysIsWarnedOfOnce) {
  server->command("CONFIG", "SET", "save", "3600 1");
  server->command("CONFIG", "SET", "maxmemory", "100mb");
  const auto said = [&] { return said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); }); };
  EXPECT_EQ(said(), "");
  for (const std::string policy : {"allkeys-lru", "volatile-ttl"}) {
    server->command("CONFIG", "SET", "maxmemory-policy", policy);
    const std::string warning = said();
    EXPECT_EQ(lines_in(warning), 1u) << warning;
    EXPECT_NE(warning.find(std::to_string(server->port())), std::string::npos) << warning;
    EXPECT_NE(warning.find("maxmemory-policy noeviction"), std::string::npos) << warning;
  }
  server->command("CONFIG", "SET", "maxmemory", "0");
  EXPECT_EQ(said(), "");
}

TEST_F(RedisOnce, WhereConfigIsRenamedNobodyIsWarned) {
  start({.settings = {"rename-command CONFIG \"\""}});
  EXPECT_EQ(said_by([&] { EXPECT_TRUE(a->prepare_marks("job", soon())); }), "");
}

TEST_F(RedisOnce, MarksOutliveARestart) {
  start({.settings = {"appendonly yes", "appendfsync always"}});
  do_job(*a, "job");
  do_job(*a, "job", "2026-W47");
  EXPECT_TRUE(a->forget_mark({"job", "2026-W47"}, soon()).value());
  const auto before = find(*a);
  ASSERT_TRUE(before);
  server->kill();
  server->start_again();
  const auto after = find(*client());
  ASSERT_TRUE(after);
  EXPECT_EQ(after->owner.id, before->owner.id);
  EXPECT_EQ(after->fence, before->fence);
  EXPECT_LE(after->left, before->left);
  EXPECT_EQ(client()->list_marks("", soon()).value().size(), 1u);
}

}  // namespace
}  // namespace dlock::test
