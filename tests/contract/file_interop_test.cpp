// What holds for the file backend alone: flock(1), odd files at the lock's path, failing disks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/file/file_backend.hpp"
#include "backends/file/record.hpp"
#include "client.hpp"
#include "fixtures.hpp"
#include "small_disk.hpp"
#include "util/host.hpp"
#include "util/poll.hpp"

extern char** environ;

namespace dlock::test {
namespace {

namespace fs = std::filesystem;

class FileBackend : public testing::Test {
 protected:
  TempDir dir;
  std::unique_ptr<Backend> a = connect();
  std::unique_ptr<Backend> b = connect();

  std::unique_ptr<Backend> connect() { return open_url("file://" + dir.path()); }
  std::string path(const std::string& name) const { return dir.path() + "/" + name; }
  bool refused(const std::string& name, int operation) const {
    const Fd fd(::open(path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    return ::flock(fd.get(), operation | LOCK_NB) != 0;
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// flock(1) or whatever else, until it is ended.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawnp(&pid_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  }
  ~Program() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// --- flock(1)

TEST_F(FileBackend, ExcludesFlock1) {
  auto lease = hold(*a, request("job"));
  EXPECT_NE(Program({"flock", "-n", path("job"), "true"}).wait(), 0);
  EXPECT_TRUE(refused("job", LOCK_SH));
  Program waiting({"flock", path("job"), "true"});
  ASSERT_TRUE(eventually([&] { return inspect(*b, "job").waiters->size() == 1; }));
  EXPECT_EQ(inspect(*b, "job").waiters->at(0).owner.pid, waiting.pid());
  EXPECT_TRUE(release(*lease));
  EXPECT_EQ(waiting.wait(), 0);
  lease = hold(*a, shared("job"));
  EXPECT_TRUE(refused("job", LOCK_EX));
  EXPECT_FALSE(refused("job", LOCK_SH));
}

TEST_F(FileBackend, IsExcludedByFlock1AndShowsIt) {
  Program flock({"flock", "--no-fork", path("job"), "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return refused("job", LOCK_EX); }));
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_EQ(code_of(try_once(*a, shared("job"))), Errc::busy);
  EXPECT_EQ(code_of(try_once(*a, slots("job", 2))), Errc::busy);
  const LockInfo info = inspect(*a, "job");
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].foreign, "flock");
  EXPECT_EQ(info.holders[0].owner.pid, flock.pid());
  EXPECT_EQ(info.holders[0].owner.host, util::host_name());
  EXPECT_TRUE(eventually([&] { return inspect(*a, "job").holders[0].owner.command == "sleep"; }));
  const auto listed = a->list("", soon());
  ASSERT_EQ(listed.value().size(), 1u);
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(waiting.blocked());
  ::kill(flock.pid(), SIGKILL);
  EXPECT_TRUE(waiting.lease());
}

TEST_F(FileBackend, FlockIsNotTakenForADeadHolder) {
  const Request dead = request("job");
  hold(*a, dead).reset();  // leaves its record
  Program flock({"flock", "--no-fork", path("job"), "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return refused("job", LOCK_EX); }));
  EXPECT_EQ(inspect(*a, "job").holders.at(0).foreign, "flock");
  EXPECT_FALSE(*a->force_release("job", dead.owner.id, {"test"}, soon()));
  EXPECT_TRUE(refused("job", LOCK_EX));
}

TEST_F(FileBackend, ASharedFlockIsAmongTheHolders) {
  Program flock({"flock", "--no-fork", "-s", path("job"), "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return refused("job", LOCK_EX); }));
  auto lease = hold(*a, shared("job"));
  const LockInfo info = inspect(*b, "job");
  ASSERT_EQ(info.holders.size(), 2u);
  EXPECT_FALSE(info.holders[0].foreign);
  EXPECT_EQ(info.holders[1].owner.pid, flock.pid());
}

TEST_F(FileBackend, IsWokenAtOnce) {
  for (int round = 0; round < 10; ++round) {
    Program flock({"flock", "--no-fork", path("job"), "sleep", "1000"});
    ASSERT_TRUE(eventually([&] { return refused("job", LOCK_EX); }));
    Waiting waiting(connect(), request("job"));
    ASSERT_TRUE(waiting.blocked());
    ASSERT_TRUE(eventually([&] { return inspect(*a, "job").waiters->size() == 1; }));
    const Deadline before = Clock::now();
    ::kill(flock.pid(), SIGKILL);
    EXPECT_TRUE(waiting.lease());
    EXPECT_LT(Clock::now() - before, here(Millis{500}));
  }
}

// --- helpers

TEST_F(FileBackend, AWaiterThatGivesUpLeavesNoProcess) {
  const auto children = [] {
    std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  auto lease = hold(*a, slots("job", 3));
  auto two = hold(*a, slots("job", 3));
  auto three = hold(*a, slots("job", 3));
  EXPECT_EQ(code_of(b->acquire(slots("job", 3), {.until = in(30)})), Errc::busy);
  EXPECT_EQ(children(), "");
}

TEST_F(FileBackend, AHelperHoldsNoOtherDescriptors) {
  auto lease = hold(*a, request("job"));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);  // not CLOEXEC
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  Waiting waiting(connect(), request("job"));
  ASSERT_TRUE(eventually([&] { return inspect(*a, "job").waiters->size() == 1; }));
  write_end.reset();
  EXPECT_TRUE(util::wait_readable(read_end.get(), soon()));  // the end: nobody else has it
}

TEST_F(FileBackend, WithoutProcessesOrDescriptorsTheErrorIsClear) {
  auto lease = hold(*a, request("job"));
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  rlimit none = old;
  const Fd highest(dup(0));
  none.rlim_cur = static_cast<rlim_t>(highest.get() + 2);
  setrlimit(RLIMIT_NOFILE, &none);
  const auto outcome = b->acquire(request("job"), {.until = soon()});
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_EQ(code_of(outcome), Errc::unreachable);
  EXPECT_NE(outcome.error().message.find("Too many open files"), std::string::npos)
      << outcome.error().message;
  EXPECT_TRUE(release(*lease));
  EXPECT_TRUE(is_free_for(*b, request("job")));
}

// --- what stands at the path

TEST_F(FileBackend, RefusesWhatIsNoPlainFileOfOurs) {
  const auto refusal = [&](const std::string& key) {
    const auto outcome = try_once(*a, request(key));
    EXPECT_EQ(code_of(outcome), Errc::denied) << key;
    EXPECT_NE(outcome.error().message.find(path(key)), std::string::npos);
    return outcome.error().message;
  };
  ASSERT_EQ(::symlink("target", path("link").c_str()), 0);
  EXPECT_NE(refusal("link").find("symbolic link"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("target")));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_NE(refusal("fifo").find("plain file"), std::string::npos);
  ASSERT_EQ(::mkdir(path("dir").c_str(), 0700), 0);
  EXPECT_NE(refusal("dir").find("directory"), std::string::npos);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, path("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  refusal("socket");
  std::ofstream(path("original")).put('\n');
  ASSERT_EQ(::link(path("original").c_str(), path("hard").c_str()), 0);
  EXPECT_NE(refusal("hard").find("hard link"), std::string::npos);
  EXPECT_EQ(content("original"), "\n");
  if (geteuid() == 0) {
    std::ofstream(path("stranger")).put('\n');
    ASSERT_EQ(::chown(path("stranger").c_str(), 4'242, 4'242), 0);
    EXPECT_NE(refusal("stranger").find("4242"), std::string::npos);
  }
  EXPECT_TRUE(a->list("", soon()).value().empty());
}

TEST_F(FileBackend, WhatStandsInThePlaceOfASlotIsRefused) {
  ASSERT_EQ(::mkfifo(path("job~slot1").c_str(), 0600), 0);
  const auto outcome = try_once(*a, slots("job", 2));
  EXPECT_EQ(code_of(outcome), Errc::denied);
  EXPECT_NE(outcome.error().message.find("job~slot1 is not a plain file"), std::string::npos);
}

TEST_F(FileBackend, UnlinkingTheFileNeverLetsTwoIn) {
  std::atomic<bool> stop = false;
  std::thread unlinker([&] {
    while (!stop) ::unlink(path("job").c_str());
  });
  // The holder's file may go at any time, so exclusion is told by the holder's own view of it: of
  // two leases on one key at most one is in place.
  for (int round = 0; round < 300; ++round) {
    auto one = try_once(*a, request("job"));
    auto two = try_once(*b, request("job"));
    if (one && two) {
      EXPECT_FALSE(renew(**one) && renew(**two));
    }
  }
  stop = true;
  unlinker.join();
  EXPECT_TRUE(is_free_for(*a, request("job")));
}

TEST_F(FileBackend, AHolderWhoseFileIsDeletedHasLostIt) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, wanted);
    const int events = listen_to(*lease);
    ::unlink(path(wanted.mode == Mode::slots ? "job~slot1" : "job").c_str());
    EXPECT_TRUE(util::wait_readable(events, soon()));
    const auto outcome = renew(*lease);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::lost);
    EXPECT_NE(outcome.error().message.find("deleted or replaced"), std::string::npos);
    EXPECT_EQ(release(*lease).error().code, Errc::lost);
  }
}

TEST_F(FileBackend, AnIdleHolderIsNotWokenByOtherKeys) {
  auto lease = hold(*a, request("job"));
  const int events = listen_to(*lease);
  EXPECT_TRUE(release(*hold(*b, request("other"))));
  EXPECT_TRUE(release(*hold(*b, shared("other"))));
  EXPECT_EQ(code_of(try_once(*b, request("job"))), Errc::busy);
  EXPECT_EQ(b->list("", soon()).value().size(), 1u);
  EXPECT_FALSE(util::wait_readable(events, Deadline{}));
}

// --- the directory

TEST_F(FileBackend, AHolderSeesThatItsDirectoryIsGone) {
  auto lease = hold(*a, request("job"));
  const int events = listen_to(*lease);
  const std::string moved = dir.path() + ".moved";
  ASSERT_EQ(::rename(dir.path().c_str(), moved.c_str()), 0);
  EXPECT_TRUE(util::wait_readable(events, soon()));
  EXPECT_NE(renew(*lease).error().message.find("was removed"), std::string::npos);
  ASSERT_EQ(::mkdir(dir.path().c_str(), 0700), 0);
  EXPECT_EQ(renew(*lease).error().code, Errc::lost);
  EXPECT_NE(renew(*lease).error().message.find("was replaced"), std::string::npos);
  fs::remove_all(moved);
}

TEST_F(FileBackend, AHolderSeesThatSomethingIsMountedOverItsDirectory) {
  auto lease = hold(*a, request("job"));
  if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "cannot mount: " << std::strerror(errno);
  }
  const auto outcome = renew(*lease);
  ::umount(dir.path().c_str());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::lost);
  EXPECT_TRUE(renew(*lease));
}

Error open_error(const std::string& url) {
  const auto parsed = parse_url(url);
  auto backend = file::open({.url = parsed.value()}, soon(), Cancel());
  if (!backend) return backend.error();
  ADD_FAILURE() << url << " was opened";
  return {Errc::busy, ""};
}

TEST_F(FileBackend, RefusesADirectoryThatIsNotSafe) {
  const auto refusal = [&](const std::string& name) {
    const Error error = open_error("file://" + path(name));
    EXPECT_NE(error.message.find(path(name)), std::string::npos) << error.message;
    return error;
  };
  EXPECT_EQ(refusal("missing").code, Errc::unreachable);
  EXPECT_FALSE(fs::exists(path("missing")));
  ::mkdir(path("real").c_str(), 0700);
  ASSERT_EQ(::symlink("real", path("link").c_str()), 0);
  EXPECT_NE(refusal("link").message.find("symbolic link"), std::string::npos);
  EXPECT_EQ(open_error("file://" + path("link/")).code, Errc::denied);
  std::ofstream(path("file")).put('\n');
  EXPECT_NE(refusal("file").message.find("not a directory"), std::string::npos);
  ::chmod(path("real").c_str(), 0777);
  EXPECT_EQ(refusal("real").code, Errc::denied);
  for (const mode_t mode : {0770, 02770, 01777}) {
    ::chmod(path("real").c_str(), mode);
    EXPECT_TRUE(open_url("file://" + path("real"))) << mode;
  }
  if (geteuid() == 0) {
    ::chmod(path("real").c_str(), 0700);
    ASSERT_EQ(::chown(path("real").c_str(), 4'242, 4'242), 0);
    EXPECT_NE(refusal("real").message.find("4242"), std::string::npos);
  }
}

TEST_F(FileBackend, ChecksItsUrl) {
  const auto fault = [](const std::string& url, std::optional<std::string> prefix = {}) {
    const auto parsed = parse_url(url);
    const auto outcome = file::place({.url = parsed.value(), .prefix = std::move(prefix)});
    return outcome ? std::string() : outcome.error().message;
  };
  EXPECT_EQ(fault("file:///x/y"), "");
  EXPECT_EQ(fault("file://"), "");
  EXPECT_NE(fault("file://x/y").find("no host"), std::string::npos);
  EXPECT_NE(fault("file:///x?a=b").find("unknown parameter"), std::string::npos);
  EXPECT_NE(fault("file:////").find("no directory"), std::string::npos);
  EXPECT_NE(fault("file:///x", "p").find("no prefix"), std::string::npos);
}

// --- content

TEST_F(FileBackend, AForeignFileIsLockedAndLeftAlone) {
  for (const std::string& text : {std::string("4121\n"), std::string("dlock1 garbage"),
                                  std::string(100'000, 'x'), std::string("{\"id\": 1}")}) {
    { std::ofstream(path("job")) << text; }
    for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
      auto lease = hold(*a, wanted);
      ASSERT_TRUE(lease);
      EXPECT_FALSE(lease->fence());
      EXPECT_EQ(
          code_of(try_once(*b, wanted.mode == Mode::slots ? slots("job", 1) : request("job"))),
          wanted.mode == Mode::slots ? Errc::conflict : Errc::busy);
      EXPECT_TRUE(renew(*lease));
      EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
      EXPECT_TRUE(release(*lease));
      EXPECT_EQ(content("job"), text);
    }
  }
}

TEST_F(FileBackend, AHugeFileIsNotRead) {
  const Fd fd(::open(path("job").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 30), 0);
  auto lease = hold(*a, request("job"));
  EXPECT_FALSE(lease->fence());
  EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
}

TEST_F(FileBackend, WhateverARegistrationHoldsItIsShownAsLongAsItIsLocked) {
  for (const std::string text :
       {"", "h", "h 0000000001 00000000000000000001\n",
        "h 0000000001 00000000000000000001\n{\"id\": 5}\n",
        "h -000000001 00000000000000000001\n{}\n",
        "h 0000000001 "
        "00000000000000000001\n{\"id\":\"x\",\"mode\":[],\"slots\":1e99,\"pid\":\"\xFF\"}\n",
        "h 0000000001 00000000000000000001\n[[[[[[", "\n\n\n",
        "z 0000000001 00000000000000000001\nnull\n"}) {
    ::mkdir(path("job~w").c_str(), 0700);
    const std::string dead = path("job~w/h0000000000000001-1");
    { std::ofstream(dead) << text; }
    EXPECT_TRUE(inspect(*a, "job").holders.empty()) << text;
    EXPECT_FALSE(fs::exists(dead)) << text;
    auto lease = hold(*a, request("job"));
    for (const auto& entry : fs::directory_iterator(path("job~w"))) {
      std::ofstream(entry.path(), std::ios::trunc) << text;
    }
    EXPECT_FALSE(inspect(*b, "job").holders.empty()) << text;
    EXPECT_FALSE(*b->force_release("job", "x", {"test"}, soon()));
    EXPECT_TRUE(renew(*lease));
    EXPECT_TRUE(release(*lease));
  }
  EXPECT_TRUE(a->list("", soon()).value().empty());
  EXPECT_FALSE(fs::exists(path("job~w")));
}

TEST_F(FileBackend, AHolderWhoseRegistrationIsDeletedRegistersAgain) {
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, wanted);
    const int events = listen_to(*lease);
    fs::remove_all(path("job~w"));
    EXPECT_TRUE(util::wait_readable(events, soon()));
    EXPECT_TRUE(renew(*lease));
    const LockInfo info = inspect(*b, "job");
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_EQ(info.holders[0].owner.id, wanted.owner.id);
    EXPECT_EQ(info.holders[0].fence, lease->fence());
    // It listens there, too.
    Breaking breaking(connect(), wanted.owner.id);
    ASSERT_TRUE(eventually([&] { return !renew(*lease); }));
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
    EXPECT_TRUE(breaking.broken());
    EXPECT_TRUE(inspect(*b, "job").holders.empty());
    EXPECT_FALSE(fs::exists(path("job~w")));
  }
}

TEST_F(FileBackend, TheFenceGrowsAlsoIfTheFileIsLost) {
  const auto fence = [&](const Request& wanted) {
    const auto lease = hold(*a, wanted);
    EXPECT_TRUE(release(*lease));
    return lease->fence().value_or(0);
  };
  std::uint64_t last = 0;
  const auto grows = [&](const Request& wanted) {
    const std::uint64_t next = fence(wanted);
    EXPECT_GT(next, last);
    last = next;
  };
  for (int i = 0; i < 200; ++i) grows(request("job"));
  { std::ofstream(path("job")) << std::string(200, '\0'); }  // as after a power failure
  grows(request("job"));
  { std::ofstream(path("job"), std::ios::trunc); }
  grows(shared("job"));
  ::unlink(path("job").c_str());
  grows(request("job"));
}

TEST_F(FileBackend, TheFenceGrowsWhenTheClockIsSetBack) {
  EXPECT_TRUE(release(*hold(*a, request("job"))));
  auto header = file::parse_header(content("job"));
  ASSERT_TRUE(header);
  header->fence += 3'600'000'000;  // of an hour later
  { std::ofstream(path("job")) << file::format_header(*header); }
  EXPECT_EQ(hold(*a, request("job"))->fence(), header->fence + 1);
}

// --- disks

TEST_F(FileBackend, AFullDiskIsAnErrorAndNothingIsHeld) {
  SmallDisk disk(path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount";
  auto full = open_url("file://" + path("disk"));
  EXPECT_TRUE(release(*hold(*full, request("used"))));
  disk.fill();
  for (const Request& wanted : {request("job"), shared("job"), slots("job", 2)}) {
    const auto outcome = try_once(*full, wanted);
    EXPECT_EQ(code_of(outcome), Errc::unreachable);
    EXPECT_NE(outcome.error().message.find("disk/job"), std::string::npos);
    EXPECT_NE(outcome.error().message.find("No space left"), std::string::npos)
        << outcome.error().message;
  }
  EXPECT_FALSE(refused("disk/job", LOCK_EX));
  EXPECT_TRUE(release(*hold(*full, request("used"))));
}

TEST_F(FileBackend, AReadOnlyDiskIsAnError) {
  SmallDisk disk(path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount";
  auto backend = open_url("file://" + path("disk"));
  ASSERT_TRUE(disk.read_only());
  const auto outcome = try_once(*backend, request("job"));
  EXPECT_EQ(code_of(outcome), Errc::unreachable);
  EXPECT_NE(outcome.error().message.find("Read-only"), std::string::npos);
  EXPECT_EQ(open_error("file://" + path("disk")).code, Errc::unreachable);
}

// --- a holder that does not answer

TEST_F(FileBackend, AHolderThatDoesNotAnswerIsNamed) {
  for (const Request& broken : {request("job"), shared("job"), slots("job", 2)}) {
    auto lease = hold(*a, broken);
    auto outcome = b->force_release("job", broken.owner.id, {"test"}, in(50));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::unreachable);
    EXPECT_NE(outcome.error().message.find("pid " + std::to_string(getpid())), std::string::npos);
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    EXPECT_EQ(renew(*lease).error().code, Errc::lost);
    // One that knows and is still at it, ending its command, has answered.
    outcome = b->force_release("job", broken.owner.id, {"test"}, in(50));
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_TRUE(*outcome);
    EXPECT_EQ(inspect(*b, "job").holders.size(), 1u);
    EXPECT_FALSE(try_once(*b, request("job")));
    EXPECT_EQ(code_of(release(*lease)), Errc::lost);
    EXPECT_TRUE(is_free_for(*b, request("job")));
  }
}

}  // namespace
}  // namespace dlock::test
