// What `dlock once` remembers on ZooKeeper: replies that are lost, requests that are late, and
// nodes that others have changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "zookeeper_fixture.hpp"

namespace dlock::test {
namespace {

class ZooKeeperOnce : public ZooKeeperTest {
 protected:
  static constexpr Millis kDay{24 * 3'600'000};
  static constexpr const char* kFolder = "/dlock/%done";
  static constexpr const char* kJob = "/dlock/%done/job";
  static constexpr const char* kClock = "/dlock/%done/%clock";
  static constexpr const char* kUser = "joe:secret";

  static Result<void> complete(Lease& lease, Deadline deadline = soon(), Millis remember = kDay) {
    return lease.complete({"", remember}, deadline, Cancel());
  }
  static void must_complete(Lease& lease, Millis remember = kDay) {
    const auto done = complete(lease, soon(), remember);
    EXPECT_TRUE(done) << done.error().message;
  }
  static void do_job(Backend& backend, const std::string& key = "job", Millis remember = kDay) {
    const auto lease = begin(backend, key);
    ASSERT_TRUE(lease);
    must_complete(*lease, remember);
  }
  bool is_by(const Lease& lease) {
    const auto mark = find(*b);
    return mark && mark->owner.id == lease.owner_id();
  }
  std::vector<std::string> marks() const {
    auto out = nodes().children(kFolder);
    std::erase(out, "%clock");
    return out;
  }
  void end_session(std::int64_t session) {
    proxy->refuse();
    ZooKeeperClient::end_session(server->port(), session);
    proxy->pass();
  }
};

// --- lost and late

TEST_F(ZooKeeperOnce, ACompletionWhoseReplyIsLostIsFoundOut) {
  for (const bool replaces : {false, true}) {
    SCOPED_TRACE(replaces);
    const auto client = through_proxy();
    const auto lease = begin(*client);
    ASSERT_TRUE(lease);
    Waiting waiting(this->client(), request("job"));
    ASSERT_TRUE(waiters_are(1));
    const long before = proxy->lost_replies();
    // A request that fails, since there is a mark, comes first.
    proxy->lose_reply_to("%done/job", 1, replaces ? 1 : 0);
    must_complete(*lease);
    EXPECT_EQ(proxy->lost_replies(), before + 1);
    proxy->pass();
    const auto next = waiting.lease();
    ASSERT_TRUE(next);
    EXPECT_TRUE(is_by(*lease));
    EXPECT_TRUE(renew(*next));
    EXPECT_TRUE(release(*next));
    EXPECT_TRUE(queue_is(0));
  }
}

TEST_F(ZooKeeperOnce, ACompletionBeforeTheSessionEndedIsFoundOut) {
  const auto lease = begin(*through_proxy());
  ASSERT_TRUE(lease);
  const std::int64_t session = session_of(children().at(0));
  proxy->hold();
  EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
  ASSERT_TRUE(queue_is(0));
  end_session(session);
  do_job(*a, "other");
  must_complete(*lease);
  EXPECT_TRUE(is_by(*lease));
}

TEST_F(ZooKeeperOnce, ALaterMarkIsNotTakenForOurs) {
  const auto lease = begin(*through_proxy());
  ASSERT_TRUE(lease);
  proxy->hold();
  EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
  ASSERT_TRUE(queue_is(0));
  const auto next = begin(*a);
  ASSERT_TRUE(next);
  must_complete(*next);
  proxy->pass();
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_TRUE(is_by(*next));
}

TEST_F(ZooKeeperOnce, WhoHasLostTheSessionBeforeIsNotRemembered) {
  const auto lease = begin(*through_proxy());
  ASSERT_TRUE(lease);
  end_session_of(children().at(0));
  const auto next = begin(*a);
  ASSERT_TRUE(next);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*b));
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  must_complete(*next);
  EXPECT_TRUE(is_by(*next));
}

TEST_F(ZooKeeperOnce, WhoseRequestWasNeverHeardIsNotRemembered) {
  const auto lease = begin(*through_proxy());
  ASSERT_TRUE(lease);
  const std::int64_t session = session_of(children().at(0));
  proxy->blackhole();
  EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
  EXPECT_TRUE(queue_is(1));
  end_session(session);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*b));
}

TEST_F(ZooKeeperOnce, IsRememberedWhenTheServerIsHeardAgain) {
  const auto lease = begin(*through_proxy());
  ASSERT_TRUE(lease);
  proxy->blackhole();
  EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
  proxy->pass();
  must_complete(*lease);
  EXPECT_TRUE(is_by(*lease));
  EXPECT_TRUE(queue_is(0));
}

TEST_F(ZooKeeperOnce, ARequestThatComesAfterTheLockWasLostRemembersNothing) {
  auto backend = through_proxy();
  const auto lease = begin(*backend);
  ASSERT_TRUE(lease);
  backend.reset();
  ASSERT_TRUE(eventually([&] { return proxy->open_connections() == 1; }));
  proxy->delay_requests(Millis{1'500});
  const auto before = proxy->request_bytes();
  EXPECT_EQ(code_of(complete(*lease, in(100))), Errc::unreachable);
  ASSERT_GT(proxy->request_bytes(), before + 300);  // the mark is in it
  const auto broken = b->force_release("job", lease->owner_id(), {"test"}, soon());
  ASSERT_TRUE(broken && broken.value());
  const auto next = begin(*a);
  ASSERT_TRUE(next);
  EXPECT_EQ(proxy->open_connections(), 1);  // the request is still on its way
  ASSERT_TRUE(eventually([&] { return proxy->open_connections() == 0; }));
  EXPECT_FALSE(find(*b));
  proxy->pass();
  const auto lost = complete(*lease);
  EXPECT_EQ(code_of(lost), Errc::lost);
  EXPECT_NE(lost.error().message.find("test"), std::string::npos) << lost.error().message;
  EXPECT_FALSE(find(*b));
  must_complete(*next);
  EXPECT_TRUE(is_by(*next));
}

TEST_F(ZooKeeperOnce, AServerThatStopsForAWhileRemembersItOrTheLockIsLost) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  server->pause();
  EXPECT_EQ(code_of(complete(*lease, in(300))), Errc::unreachable);
  server->resume();
  const auto done = complete(*lease);
  EXPECT_TRUE(done || done.error().code == Errc::lost) << done.error().message;
  EXPECT_EQ(is_by(*lease), done.has_value());
  EXPECT_TRUE(queue_is(0));
}

TEST_F(ZooKeeperOnce, IsDoneOnceHoweverOftenConnectionsAreCut) {
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0;
  const auto seed = static_cast<unsigned>(Clock::now().time_since_epoch().count());
  SCOPED_TRACE(seed);
  std::thread worker([&] {
    const auto client = through_proxy();
    while (!stop) {
      auto lease = client->acquire(request("job"), {.until = in(1'000)});
      if (!lease) continue;
      while (!client->prepare_marks("job", in(2'000))) {
      }
      Result<void> done = complete(**lease, in(500));
      while (!done && done.error().code == Errc::unreachable) done = complete(**lease, in(500));
      // Nobody ends the sessions here.
      EXPECT_TRUE(done) << done.error().message;
      EXPECT_TRUE(is_by(**lease));
      ++rounds;
    }
  });
  proxy->cut_often(seed, [&] { return rounds > 5; });
  stop = true;
  worker.join();
  EXPECT_GT(rounds, 5);
  EXPECT_TRUE(queue_is(0));
}

// A server that is behind the others must not tell what was before.
TEST_F(ZooKeeperOnce, WhatOneServerHasSeenEachOtherSees) {
  ZooKeeperEnsemble servers;
  std::vector<std::unique_ptr<Backend>> clients;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    clients.push_back(connect_zookeeper(servers[i].url()));
  }
  for (std::size_t round = 0; round < 60; ++round) {
    Backend& worker = *clients[round % clients.size()];
    do_job(worker);
    for (const auto& each : clients) EXPECT_TRUE(find(*each)) << round;
    const auto gone = clients[(round + 1) % clients.size()]->forget_mark({"job", ""}, soon());
    EXPECT_TRUE(gone && gone.value()) << round;
    for (const auto& each : clients) EXPECT_FALSE(find(*each)) << round;
  }
}

TEST_F(ZooKeeperOnce, IsRememberedAlthoughTheLeaderDies) {
  ZooKeeperEnsemble servers;
  const auto client = connect_zookeeper(servers.url());
  const auto lease = begin(*client);
  ASSERT_TRUE(lease);
  servers[servers.leader()].kill();
  Result<void> done = complete(*lease, in(2'000));
  while (!done && done.error().code == Errc::unreachable) done = complete(*lease, in(2'000));
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(eventually([&] {
    const auto mark = client->find_mark({"job", ""}, soon());
    return mark && mark.value() && mark.value()->owner.id == lease->owner_id();
  }));
}

// --- changed by others

TEST_F(ZooKeeperOnce, WhoseNodeWasDeletedByHandIsNotRemembered) {
  for (const bool replaces : {false, true}) {
    if (replaces) do_job(*a);
    const auto before = replaces ? nodes().data(kJob) : "";
    const auto lease = begin(*a);
    ASSERT_TRUE(lease);
    nodes().remove("/dlock/job/" + children().at(0));
    EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
    EXPECT_EQ(nodes().exists(kJob), replaces);
    if (replaces) {
      EXPECT_EQ(nodes().data(kJob), before);
    }
  }
}

TEST_F(ZooKeeperOnce, ReplacesAMarkThatIsOver) {
  do_job(*a, "job", Millis{1});
  const auto before = nodes().stat(kJob);
  ASSERT_TRUE(before);
  EXPECT_TRUE(eventually([&] { return !find(*b); }));
  const auto lease = hold(*a, request("job"));  // and not swept by prepare_marks()
  ASSERT_TRUE(lease);
  must_complete(*lease);
  EXPECT_TRUE(is_by(*lease));
  const auto now = nodes().stat(kJob);
  ASSERT_TRUE(now);
  EXPECT_EQ(now->created_zxid, before->created_zxid);
}

TEST_F(ZooKeeperOnce, AMarkThatGoesMeanwhileIsMadeAnew) {
  do_job(*a);
  const auto lease = begin(*through_proxy());
  ASSERT_TRUE(lease);
  proxy->delay_replies(Millis{100});  // so that it finds the mark, and none the next time
  const auto bytes = proxy->request_bytes();
  auto done = std::async(std::launch::async, [&] { return complete(*lease); });
  EXPECT_TRUE(eventually([&] { return proxy->request_bytes() > bytes; }));
  nodes().remove(kJob);
  const auto result = done.get();
  EXPECT_TRUE(result) << result.error().message;
  EXPECT_TRUE(is_by(*lease));
}

TEST_F(ZooKeeperOnce, AFolderThatGoesMeanwhileIsMadeAnew) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  nodes().remove_all(kFolder);
  EXPECT_FALSE(find(*b));
  must_complete(*lease);
  EXPECT_TRUE(is_by(*lease));
  EXPECT_EQ(marks(), (std::vector<std::string>{"job"}));
  EXPECT_TRUE(nodes().exists(kClock));
}

TEST_F(ZooKeeperOnce, WhatIsNoMarkIsNamedAndLeftAlone) {
  do_job(*a, "other");
  nodes().create(kJob, "");
  for (const std::string& garbage :
       {std::string("hello"), std::string("{}"), std::string("{\"dlock\":1,\"id\":[]}"),
        std::string(200'000, '{'), std::string("\0\xff", 2)}) {
    nodes().set(kJob, garbage);
    const auto found = b->find_mark({"job", ""}, soon());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::conflict);
    EXPECT_NE(found.error().message.find(kJob), std::string::npos) << found.error().message;
    const auto forgotten = b->forget_mark({"job", ""}, soon());
    EXPECT_TRUE(forgotten && !forgotten.value());
    const auto listed = b->list_marks("", soon());
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed.value().size(), 1u);
    EXPECT_TRUE(a->prepare_marks("job", soon()));
    EXPECT_EQ(nodes().data(kJob), garbage);
  }
  for (const char* name :
       {"my job", "job~", "job~2026/x", "job~12345678901234567", "a~b~c", "%zz"}) {
    nodes().create_all(std::string(kFolder) + '/' + name);
  }
  const auto listed = b->list_marks("", soon());
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed.value().size(), 1u);
}

// The path of a mark, and that of its end.
TEST_F(ZooKeeperOnce, AMarkOfAnotherNameIsNeverFound) {
  do_job(*a);
  nodes().create(std::string(kFolder) + "/job~2026-11-22", nodes().data(kJob));
  const auto listed = b->list_marks("", soon());
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed.value().size(), 2u);
  EXPECT_TRUE(b->find_mark({"job", "2026-11-22"}, soon()).value());
  EXPECT_FALSE(b->find_mark({"job", "2026"}, soon()).value());
}

// --- where

TEST_F(ZooKeeperOnce, LookingCreatesNothing) {
  const auto root = nodes().children("/");
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(a->list_marks("", soon()).value().empty());
  EXPECT_FALSE(a->forget_mark({"job", ""}, soon()).value());
  EXPECT_EQ(nodes().children("/"), root);
  do_job(*a);
  nodes().remove(std::string(kFolder) + "/%clock");
  EXPECT_TRUE(find(*b));
  EXPECT_EQ(b->list_marks("", soon()).value().size(), 1u);
  EXPECT_FALSE(nodes().exists(std::string(kFolder) + "/%clock"));
  do_job(*b);
  EXPECT_TRUE(nodes().exists(std::string(kFolder) + "/%clock"));
}

TEST_F(ZooKeeperOnce, IsBelowTheChrootAndThePrefix) {
  nodes().create_all("/team/x");
  const auto client = [&] {
    return connect_zookeeper(server->url() + "/team/x", {.prefix = "/some/locks"});
  };
  const auto one = client();
  do_job(*one);
  EXPECT_TRUE(find(*client()));
  EXPECT_TRUE(nodes().exists("/team/x/some/locks/%done/job"));
  EXPECT_FALSE(find(*a));
  EXPECT_EQ(one->list_marks("", soon()).value().size(), 1u);
  const auto bare = connect_zookeeper(server->url(), {.prefix = "/"});
  do_job(*bare);
  EXPECT_TRUE(nodes().exists("/%done/job"));
  EXPECT_TRUE(find(*bare));
}

TEST_F(ZooKeeperOnce, NeedsTheChroot) {
  const auto lost = connect_zookeeper(server->url() + "/nowhere");
  const auto says_so = [](const auto& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::invalid);
    EXPECT_NE(result.error().message.find("/nowhere"), std::string::npos) << result.error().message;
  };
  says_so(lost->find_mark({"job", ""}, soon()));
  says_so(lost->prepare_marks("job", soon()));
  says_so(lost->list_marks("", soon()));
  says_so(lost->forget_mark({"job", ""}, soon()));
}

TEST_F(ZooKeeperOnce, StaysWhenEmptyContainersGo) {
  start(ZooKeeperOptions{.properties = {"-Dznode.container.checkIntervalMs=20"}});
  do_job(*a);
  EXPECT_TRUE(eventually([&] { return !nodes().exists("/dlock/job"); }));
  EXPECT_TRUE(find(*b));
}

// --- rights

TEST_F(ZooKeeperOnce, MarksOfAUserAreTheirsAlone) {
  const auto joe = client({.auth = kUser});
  do_job(*joe);
  EXPECT_TRUE(find(*client({.auth = kUser})));
  ZooKeeperClient oracle(server->port());
  oracle.add_digest(kUser);
  for (const char* path : {kFolder, kJob, "/dlock/%done/%clock"}) {
    const std::string acl = oracle.acl(path);
    EXPECT_TRUE(acl.starts_with("digest:joe:") && acl.ends_with(":cdrwa")) << path << ' ' << acl;
  }
  for (const std::string auth : {"", "eve:secret"}) {
    const auto other = client({.auth = auth});
    const auto found = other->find_mark({"job", ""}, soon());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::denied) << found.error().message;
    EXPECT_NE(found.error().message.find(auth.empty() ? "auth_file" : "permission"),
              std::string::npos)
        << found.error().message;
    EXPECT_EQ(code_of(other->prepare_marks("job", soon())), Errc::denied);
    EXPECT_EQ(other->list_marks("", soon()).error().code, Errc::denied);
    EXPECT_EQ(other->forget_mark({"job", ""}, soon()).error().code, Errc::denied);
  }
}

TEST_F(ZooKeeperOnce, WhoMayOnlyReadFindsMarks) {
  do_job(*a);
  do_job(*a, "over", Millis{1});
  nodes().create(std::string(kFolder) + "/secret", nodes().data(kJob));
  nodes().set_acl(std::string(kFolder) + "/secret", "world:anyone:cdwa");
  for (const char* path : {kFolder, kJob, "/dlock/%done/%clock"}) {
    nodes().set_acl(path, "world:anyone:ra");
  }
  const auto mark = find(*b);
  ASSERT_TRUE(mark);
  EXPECT_LT(mark->age, kPatience);
  EXPECT_TRUE(eventually([&] { return !find(*b, "over"); }));
  EXPECT_EQ(b->list_marks("", soon()).value().size(), 1u);
  const auto forgotten = b->forget_mark({"job", ""}, soon());
  ASSERT_FALSE(forgotten);
  EXPECT_EQ(forgotten.error().code, Errc::denied) << forgotten.error().message;
}

// Before the job is run.
TEST_F(ZooKeeperOnce, ARightThatIsMissingIsFoundByPreparing) {
  EXPECT_TRUE(a->prepare_marks("job", soon()));
  for (const char* rights : {"drwa", "cdra"}) {
    nodes().set_acl(kFolder, std::string("world:anyone:") + rights);
    const auto refused = b->prepare_marks("job", soon());
    EXPECT_EQ(code_of(refused), Errc::denied) << rights;
    EXPECT_NE(refused.error().message.find(kFolder), std::string::npos);
    const auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    EXPECT_EQ(code_of(complete(*lease)), Errc::denied);
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
    EXPECT_FALSE(find(*b));
  }
}

TEST_F(ZooKeeperOnce, ARightThatIsMissingAtTheLockIsFoundByPreparing) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  nodes().set_acl("/dlock/job", "world:anyone:crwa");
  const auto refused = b->prepare_marks("job", soon());
  EXPECT_EQ(code_of(refused), Errc::denied);
  EXPECT_TRUE(b->prepare_marks("other", soon()));
  const auto done = complete(*lease);
  EXPECT_EQ(code_of(done), Errc::denied);
  for (const auto& each : {refused, done}) {
    ASSERT_FALSE(each);
    EXPECT_NE(each.error().message.find("/dlock/job"), std::string::npos) << each.error().message;
  }
  nodes().set_acl("/dlock/job", "world:anyone:cdrwa");
  must_complete(*lease);
}

// A job is not to be remembered by the clock of its own machine.
TEST_F(ZooKeeperOnce, PreparingNeedsTheClock) {
  EXPECT_TRUE(a->prepare_marks("job", soon()));
  nodes().set_acl(kClock, "world:anyone:cdra");
  const auto refused = b->prepare_marks("job", soon());
  EXPECT_EQ(code_of(refused), Errc::denied);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(kClock), std::string::npos) << refused.error().message;
}

// The node above the folder cannot be made, so that it is missing each time.
TEST_F(ZooKeeperOnce, PreparingEndsWhereNothingCanBeMade) {
  nodes().create("/app");
  nodes().set_acl("/app", "world:anyone:ra");
  const auto client = connect_zookeeper(server->url(), {.prefix = "/app/locks"});
  const auto refused = client->prepare_marks("job", kNever);
  EXPECT_EQ(code_of(refused), Errc::denied);
  EXPECT_NE(refused.error().message.find("/app/locks"), std::string::npos)
      << refused.error().message;
  nodes().set_acl("/app", "world:anyone:cdrwa");
}

// --- sweeping

TEST_F(ZooKeeperOnce, MarksThatAreOverGoAndOthersStay) {
  for (int i = 0; i < 40; ++i) do_job(*a, "over-" + std::to_string(i), Millis{1});
  for (int i = 0; i < 5; ++i) do_job(*a, "stays-" + std::to_string(i));
  EXPECT_TRUE(eventually([&] {
    const auto before = marks().size();
    EXPECT_TRUE(b->prepare_marks("job", soon()));
    EXPECT_LE(before - marks().size(), 16u);
    return marks().size() == 5;
  }));
  EXPECT_EQ(b->list_marks("stays-", soon()).value().size(), 5u);
}

// Jobs of many machines begin and end in the same second of the day.
TEST_F(ZooKeeperOnce, SweepsAlthoughOtherJobsBegin) {
  EXPECT_TRUE(a->prepare_marks("job", soon()));
  const auto before = nodes().stat(kFolder);
  ASSERT_TRUE(before);
  EXPECT_TRUE(b->prepare_marks("other", soon()));
  const auto now = nodes().stat(kFolder);
  ASSERT_TRUE(now);
  EXPECT_EQ(now->version, before->version);
}

TEST_F(ZooKeeperOnce, SweepsAlthoughAnotherJobEnds) {
  const auto client = through_proxy();
  EXPECT_FALSE(find(*client));
  do_job(*a, "over", Millis{1});
  EXPECT_TRUE(eventually([&] { return !find(*b, "over"); }));
  proxy->delay_requests(Millis{100});
  EXPECT_TRUE(eventually([&] {
    const auto lease = hold(*a, request("other"));
    if (!lease) return true;
    auto bytes = proxy->request_bytes();
    auto sweeping =
        std::async(std::launch::async, [&] { return client->prepare_marks("job", soon()); });
    for (int requests = 4; requests > 0; --requests) {
      EXPECT_TRUE(eventually([&] { return proxy->request_bytes() > bytes; }));
      bytes = proxy->request_bytes();
    }
    must_complete(*lease);
    EXPECT_TRUE(sweeping.get());
    return marks() == std::vector<std::string>{"other"};
  }));
}

TEST_F(ZooKeeperOnce, ALargeFolderIsListedSeldom) {
  do_job(*a, "job", Millis{1});
  const std::string over = nodes().data(kJob);
  do_job(*a);
  const std::string stays = nodes().data(kJob);
  auto oracle = nodes();
  for (int i = 0; i < 1'300; ++i) {
    oracle.create(std::string(kFolder) + "/m" + std::to_string(i), i < 200 ? over : stays);
  }
  const auto count = marks().size();
  int swept = 0;
  for (int i = 0; i < 32; ++i) {
    const auto before = marks().size();
    EXPECT_TRUE(b->prepare_marks("job", soon()));
    if (marks().size() < before) ++swept;
  }
  EXPECT_LE(swept, 14);  // two are to be expected
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(b->prepare_marks("job", soon()));
    return marks().size() < count - 16;
  }));
}

TEST_F(ZooKeeperOnce, ASweepThatGetsNoAnswerIsGivenUpInTime) {
  do_job(*a);
  const auto client = through_proxy();
  EXPECT_TRUE(find(*client));
  const Deadline deadline = in(6'000);
  // As the request to list the folder has it.
  proxy->lose_reply_to(std::string("\0\0\0\x08\0\0\0\x0c", 8) + kFolder, -1);
  const auto ready = client->prepare_marks("job", deadline);
  EXPECT_TRUE(ready) << ready.error().message;
  EXPECT_GT(deadline - Clock::now(), Millis{3'000});
  EXPECT_GT(proxy->lost_replies(), 0);
}

// The request to delete the mark is late.  Meanwhile the mark was deleted, and made anew with the
// same version.
TEST_F(ZooKeeperOnce, ALateSweepOrForgettingLeavesANewMark) {
  for (const bool forgets : {false, true}) {
    SCOPED_TRACE(forgets);
    const auto client = through_proxy();
    ASSERT_TRUE(client->prepare_marks("job", soon()));
    const auto leave_mark = [&] {
      do_job(*a, "job", forgets ? kDay : Millis{1});
      EXPECT_TRUE(forgets || eventually([&] { return !find(*b); }));
    };
    const auto take_mark = [&] {
      if (!forgets) return client->prepare_marks("other", soon()).has_value();
      const auto gone = client->forget_mark({"job", ""}, soon());
      return gone && gone.value();
    };
    leave_mark();
    const auto begun = proxy->request_bytes();
    ASSERT_TRUE(take_mark());
    ASSERT_FALSE(nodes().exists(kJob));
    const auto cost = proxy->request_bytes() - begun;

    leave_mark();
    proxy->delay_requests(Millis{250});
    const auto begun_late = proxy->request_bytes();
    auto late = std::async(std::launch::async, take_mark);
    // So many bytes, and its last request is under way, however they were cut into pieces.
    ASSERT_TRUE(eventually([&] { return proxy->request_bytes() >= begun_late + cost; }));
    nodes().remove(kJob);
    const auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    must_complete(*lease);
    proxy->delay_requests(Millis{0});
    EXPECT_TRUE(late.get());
    const auto mark = nodes().stat(kJob);
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->version, 0);
    EXPECT_TRUE(is_by(*lease));
    EXPECT_TRUE(b->forget_mark({"job", ""}, soon()).value());
  }
}

// What tells the time was deleted by hand.
TEST_F(ZooKeeperOnce, WithoutItsClockAMarkIsForgottenAllTheSame) {
  do_job(*a);
  nodes().remove("/dlock/%done/%clock");
  EXPECT_TRUE(find(*b));
  const auto gone = b->forget_mark({"job", ""}, soon());
  EXPECT_TRUE(gone && gone.value());
  EXPECT_FALSE(find(*b));
}

TEST_F(ZooKeeperOnce, AForgettingWhoseReplyIsLostHasForgotten) {
  const auto client = through_proxy();
  for (int skip = 0; skip < 2; ++skip) {
    do_job(*a);
    proxy->lose_reply_to("%done/job", 1, skip);
    const auto gone = client->forget_mark({"job", ""}, soon());
    EXPECT_TRUE(gone && gone.value());
    EXPECT_EQ(proxy->lost_replies(), skip + 1);
    EXPECT_FALSE(find(*b));
    proxy->pass();
  }
}

// A client that has waited for hours for the lock has said nothing meanwhile.
TEST_F(ZooKeeperOnce, LookingGoesOnInANewSessionWhenTheLastOneHasEnded) {
  const auto client = through_proxy();
  ASSERT_TRUE(client->prepare_marks("job", soon()));
  do_job(*a);
  const auto lease = hold(*a, request("other"));
  const auto note = client->force_release("other", lease->owner_id(), {"test"}, soon());
  ASSERT_TRUE(note && note.value());
  const auto left = nodes().children("/dlock/%broken");
  ASSERT_EQ(left.size(), 1u);
  const auto note_node = nodes().stat("/dlock/%broken/" + left[0]);
  ASSERT_TRUE(note_node);
  const std::int64_t session = note_node->session;
  proxy->blackhole();  // the end of its connection is not heard
  ZooKeeperClient::end_session(server->port(), session);
  proxy->pass();
  EXPECT_TRUE(find(*client));
}

}  // namespace
}  // namespace dlock::test
