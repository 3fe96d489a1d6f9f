// What holds for marks in files alone: what is left by those who are killed, disks that fail, odd
// files, several users.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "client.hpp"
#include "fixtures.hpp"
#include "small_disk.hpp"
#include "util/host.hpp"

namespace dlock::test {
namespace {

namespace fs = std::filesystem;

constexpr Millis kDay{24 * 3'600'000};

class FileOnce : public testing::Test {
 protected:
  TempDir dir;
  std::unique_ptr<Backend> a = connect();
  std::unique_ptr<Backend> b = connect();

  std::unique_ptr<Backend> connect(const std::string& name = "") {
    return open_url("file://" + dir.path() + name);
  }
  std::string path(const std::string& name) const { return dir.path() + "/" + name; }
  std::string marks(const std::string& name = "") const { return path("~done/" + name); }
  static std::set<std::string> names_in(const std::string& folder) {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  static void write(const std::string& file, const std::string& text) {
    const mode_t cleared = ::umask(022);  // by dlock, in this process
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file) << text;
    ::umask(cleared);
  }

  static Result<void> complete(Lease& lease, const std::string& period = "",
                               Millis remember = kDay) {
    return lease.complete({period, remember}, soon(), Cancel());
  }
  static bool do_job(Backend& backend, const std::string& key = "job",
                     const std::string& period = "", Millis remember = kDay) {
    const auto lease = begin(backend, key);
    if (!lease) return false;
    const auto done = complete(*lease, period, remember);
    EXPECT_TRUE(done) << done.error().message;
    return static_cast<bool>(done);
  }
  // And waits until its mark has expired.
  static bool do_brief_job(Backend& backend, const std::string& key = "job",
                           const std::string& period = "") {
    return do_job(backend, key, period, Millis{1}) &&
           eventually([&] { return !find(backend, key, period); });
  }
  static Result<std::optional<Mark>> look(Backend& backend, const std::string& key = "job",
                                          const std::string& period = "") {
    return backend.find_mark({key, period}, soon());
  }
  static Result<bool> forget(Backend& backend, const std::string& key = "job") {
    return backend.forget_mark({key, ""}, soon());
  }
};

TEST_F(FileOnce, WhoLooksMakesNothing) {
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(a->list_marks("", soon()).value().empty());
  EXPECT_FALSE(forget(*a).value());
  EXPECT_TRUE(names_in(dir.path()).empty());
  ASSERT_TRUE(do_job(*a));
  const auto before = names_in(marks());
  EXPECT_FALSE(find(*a, "other"));
  EXPECT_FALSE(find(*a, std::string(255, '%')));
  EXPECT_FALSE(forget(*a, "other").value());
  EXPECT_EQ(names_in(marks()), before);
}

TEST_F(FileOnce, AMarkIsNoLockAndNoCounter) {
  ASSERT_TRUE(do_job(*a, std::string(255, 'k')));
  ASSERT_TRUE(do_job(*a, "job"));
  EXPECT_TRUE(a->list("", soon()).value().empty());
  EXPECT_EQ(*a->take_numbers("job", 1, soon()), 1u);
  EXPECT_EQ(a->list_marks("", soon()).value().size(), 2u);
}

TEST_F(FileOnce, SaysOnceWhereAMarkWouldNotOutliveABoot) {
  testing::internal::CaptureStderr();
  for (const std::string key : {"job", "other", "job"}) {
    EXPECT_TRUE(a->prepare_marks(key, soon()));
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("~done is in memory: what is done is forgotten"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// --- the lock

TEST_F(FileOnce, WithoutItsLockFileNothingIsRemembered) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  ::unlink(path("job").c_str());
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  const auto next = hold(*b, request("job"));
  ASSERT_TRUE(next);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*b));
  EXPECT_FALSE(fs::exists(marks("job~")));
}

TEST_F(FileOnce, WithoutItsDirectoryNothingIsRemembered) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  const std::string moved = dir.path() + ".moved";
  ASSERT_EQ(::rename(dir.path().c_str(), moved.c_str()), 0);
  EXPECT_FALSE(complete(*lease));
  ASSERT_EQ(::mkdir(dir.path().c_str(), 0700), 0);
  EXPECT_EQ(code_of(complete(*lease)), Errc::lost);
  EXPECT_FALSE(find(*connect()));
  EXPECT_FALSE(find(*open_url("file://" + moved)));
  fs::remove_all(moved);
}

TEST_F(FileOnce, AnEarlierMarkThatWouldLastLongerIsReplaced) {
  ASSERT_TRUE(do_job(*a));
  ASSERT_TRUE(do_job(*b, "job", "", Millis{500}));
  EXPECT_TRUE(eventually([&] { return !find(*a); }));
}

TEST_F(FileOnce, WhoLooksWhileAMarkIsReplacedAlwaysFindsOne) {
  ASSERT_TRUE(do_job(*a));
  std::atomic<bool> stop = false;
  std::thread replacing([&] {
    while (!stop) {
      const auto lease = hold(*a, request("job"));
      EXPECT_TRUE(lease && complete(*lease));
    }
  });
  int missing = 0;
  for (int i = 0; i < 10'000; ++i) missing += find(*b) ? 0 : 1;
  stop = true;
  replacing.join();
  EXPECT_EQ(missing, 0);
}

// --- processes that are killed

TEST_F(FileOnce, WhatAKilledProcessHasSaidIsDoneIsRemembered) {
  for (int round = 0; round < 5; ++round) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto own = connect();
      for (char number = 0; number < 100; ++number) {
        const auto lease = hold(*own, request("job" + std::to_string(number)));
        if (!lease || !complete(*lease)) _exit(1);
        (void)!::write(ends[1], &number, 1);
      }
      _exit(0);
    }
    const Fd said(ends[0]);
    ::close(ends[1]);
    char last = 0;
    for (int i = 0; i < 10 * round + 1; ++i) ASSERT_EQ(::read(said.get(), &last, 1), 1);
    ::kill(pid, SIGKILL);
    while (::read(said.get(), &last, 1) == 1) {
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    for (int number = 0; number <= last; ++number) {
      EXPECT_TRUE(find(*a, "job" + std::to_string(number))) << number;
    }
    // The one that it was at is done or not, and can be done.
    const std::string next = "job" + std::to_string(last + 1);
    EXPECT_TRUE(look(*a, next));
    EXPECT_TRUE(is_free_for(*a, request(next)));
    EXPECT_TRUE(do_job(*a, next));
    EXPECT_TRUE(find(*a, next));
    fs::remove_all(marks());
  }
}

TEST_F(FileOnce, WhatAKilledProcessHasLeftCountsForNothingAndGoes) {
  ASSERT_TRUE(do_job(*a, "other"));
  write(marks("job~"), "");
  EXPECT_FALSE(find(*a));
  EXPECT_FALSE(forget(*a).value());
  EXPECT_EQ(a->list_marks("", soon()).value().size(), 1u);
  ASSERT_TRUE(a->prepare_marks("job", soon()));
  EXPECT_EQ(names_in(marks()), (std::set<std::string>{"other~"}));
}

// While it was writing.
TEST_F(FileOnce, AProcessThatIsStoppedHidesOneMarkAndHoldsNobodyUp) {
  ASSERT_TRUE(do_job(*a, "job"));
  ASSERT_TRUE(do_job(*a, "other"));
  const Fd file(::open(marks("job~").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
  ASSERT_EQ(::pwrite(file.get(), "1", 1, 32 * 1024), 1);
  testing::internal::CaptureStderr();
  const auto listed = b->list_marks("", kNever);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("is it stopped?"), std::string::npos);
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed.value().size(), 1u);
  EXPECT_EQ(b->find_mark({"job", ""}, in(50)).error().code, Errc::unreachable);
  ASSERT_EQ(::flock(file.get(), LOCK_UN), 0);
  EXPECT_TRUE(find(*b));
}

// --- disks

TEST_F(FileOnce, AFullDiskIsFoundBeforeTheJobRunsAndCanBeWaitedForAfterIt) {
  SmallDisk disk(path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount";
  const auto on_disk = connect("/disk");
  const auto lease = begin(*on_disk);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(do_job(*on_disk, "other"));
  disk.fill();
  const auto ready = on_disk->prepare_marks("job", soon());
  EXPECT_EQ(code_of(ready), Errc::unreachable);
  EXPECT_NE(ready.error().message.find("disk/~done/"), std::string::npos);
  EXPECT_NE(ready.error().message.find("No space left"), std::string::npos);
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  EXPECT_FALSE(find(*on_disk));
  EXPECT_TRUE(renew(*lease));
  disk.make_room();
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(find(*on_disk));
  EXPECT_TRUE(is_free_for(*on_disk, request("job")));
}

TEST_F(FileOnce, ADiskThatIsFullOfExpiredMarksIsSweptBeforeAJobRuns) {
  SmallDisk disk(path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount";
  const auto on_disk = connect("/disk");
  const auto lease = begin(*on_disk);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(do_brief_job(*on_disk, "old"));
  disk.fill();
  const auto ready = on_disk->prepare_marks("job", soon());
  EXPECT_TRUE(ready) << ready.error().message;
  EXPECT_TRUE(complete(*lease));
  EXPECT_TRUE(find(*on_disk));
}

TEST_F(FileOnce, AReadOnlyDiskStillTellsWhatIsDone) {
  SmallDisk disk(path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount";
  const auto on_disk = connect("/disk");
  ASSERT_TRUE(do_job(*on_disk));
  ASSERT_TRUE(disk.read_only());
  EXPECT_TRUE(find(*on_disk));
  EXPECT_EQ(on_disk->list_marks("", soon()).value().size(), 1u);
  for (const std::string key : {"job", "other"}) {
    const auto ready = on_disk->prepare_marks(key, soon());
    EXPECT_EQ(code_of(ready), Errc::unreachable);
    EXPECT_NE(ready.error().message.find("Read-only"), std::string::npos);
  }
  const auto forgotten = forget(*on_disk);
  ASSERT_FALSE(forgotten);
  EXPECT_EQ(forgotten.error().code, Errc::unreachable);
  EXPECT_TRUE(find(*on_disk));
}

TEST_F(FileOnce, TheLongestTimeIsRemembered) {
  ASSERT_TRUE(do_job(*a, "job", "", kLongestRemembered));
  const auto mark = find(*a);
  ASSERT_TRUE(mark);
  EXPECT_GE(mark->age, Millis{0});
  EXPECT_GT(mark->left, kDay * 365 * 99);
}

// --- what stands in the place of a mark

TEST_F(FileOnce, WhatIsNoMarkIsNamedAndHidesNothing) {
  ASSERT_TRUE(do_job(*a, "other"));
  const std::string file = marks("job~");
  const auto bad = [&](const std::string& what, Errc code = Errc::denied) {
    const auto found = look(*a);
    ASSERT_FALSE(found) << what;
    EXPECT_EQ(found.error().code, code) << what;
    EXPECT_NE(found.error().message.find(file), std::string::npos) << found.error().message;
    testing::internal::CaptureStderr();
    const auto listed = a->list_marks("", soon());
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(listed) << what;
    EXPECT_EQ(listed.value().size(), 1u) << what;
    EXPECT_NE(said.find(file), std::string::npos) << said;
  };
  for (const std::string& text : {std::string("{}"), std::string("null"), std::string(100'000, '['),
                                  std::string("dlock 1 2 3\n")}) {
    write(file, text);
    bad(text.substr(0, 50), Errc::conflict);
  }
  ::truncate(file.c_str(), off_t{1} << 30);
  bad("huge", Errc::conflict);
  ::unlink(file.c_str());
  ::symlink("/etc/passwd", file.c_str());
  bad("link");
  ::unlink(file.c_str());
  ::mkfifo(file.c_str(), 0600);
  bad("fifo");
  ::unlink(file.c_str());
  ::mkdir(file.c_str(), 0700);
  bad("directory");
  ::rmdir(file.c_str());
  ::link(marks("other~").c_str(), file.c_str());
  EXPECT_FALSE(look(*a));
}

TEST_F(FileOnce, ADurableTextThatIsNoMarkIsNamed) {
  EXPECT_TRUE(a->records()->write({RecordKind::mark, "job", ""}, "", "no mark", soon()).value());
  const auto found = look(*a);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::conflict);
  EXPECT_NE(found.error().message.find(marks("job~")), std::string::npos) << found.error().message;
}

TEST_F(FileOnce, OtherNamesAreNoMarks) {
  for (const std::string name : {"x", "~", "~trial", "~~", "job~a~b", "job~..",
                                 "job~12345678901234567", "job~a_b", "%6a~", "job"}) {
    write(marks(name), "x");
  }
  testing::internal::CaptureStderr();
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(a->list_marks("", soon()).value().empty());
  ASSERT_TRUE(do_job(*a));
  EXPECT_EQ(a->list_marks("", soon()).value().size(), 1u);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("not listed"), std::string::npos);
}

TEST_F(FileOnce, WhatIsNoFolderOfLongNamesIsNamedAndHidesNothing) {
  ASSERT_TRUE(do_job(*a));
  const std::string name = std::string(200, 'a') + '%';
  write(marks(name), "x");
  testing::internal::CaptureStderr();
  const auto listed = a->list_marks("", soon());
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed.value().size(), 1u);
  EXPECT_NE(said.find(name), std::string::npos) << said;
}

// --- sweeping

TEST_F(FileOnce, KeysThatAreNotUsedAgainLeaveNoFiles) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(do_job(*a, "live" + std::to_string(i)));
  const std::string padding(250, '%');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(do_brief_job(*a, (i % 2 == 0 ? "" : padding) + std::to_string(i)));
  }
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(marks())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_LT(files, 60u);
  EXPECT_EQ(a->list_marks("live", soon()).value().size(), 20u);
}

TEST_F(FileOnce, PeriodsThatAreOverGo) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(do_brief_job(*a, "job", std::to_string(i)));
  ASSERT_TRUE(do_job(*a, "job", "last"));
  EXPECT_TRUE(find(*a, "job", "last"));
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(a->prepare_marks("job", soon()));
    return names_in(marks()) == std::set<std::string>{"job~last"};
  }));
}

TEST_F(FileOnce, MarksComeAndGoWhileOthersSweep) {
  std::atomic<bool> stop = false;
  std::thread sweeping([&] {
    while (!stop) EXPECT_TRUE(b->prepare_marks("other", soon()));
  });
  testing::internal::CaptureStderr();
  for (int i = 0; i < 300; ++i) {
    const auto lease = hold(*a, request("job"));
    ASSERT_TRUE(lease);
    EXPECT_TRUE(complete(*lease));
    EXPECT_TRUE(find(*a)) << i;
    EXPECT_TRUE(forget(*a).value()) << i;
  }
  stop = true;
  sweeping.join();
  (void)testing::internal::GetCapturedStderr();
}

// --- several users

constexpr uid_t kAlice = 64'101;
constexpr uid_t kBob = 64'102;
constexpr gid_t kTeam = 64'100;

class FileOnceUsers : public FileOnce {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    ::chmod(dir.path().c_str(), 0711);
  }
  void share(mode_t mode) {
    ASSERT_EQ(::mkdir(path("shared").c_str(), 0700), 0);
    ASSERT_EQ(::chown(path("shared").c_str(), 0, kTeam), 0);
    ASSERT_EQ(::chmod(path("shared").c_str(), mode), 0);
  }
  std::unique_ptr<Backend> connect_shared() { return connect("/shared"); }
  /// Whether a process of this user finds that `what` holds.
  static bool as(uid_t user, const std::function<bool()>& what) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const bool is_user = ::setgroups(1, &kTeam) == 0 && ::setresgid(user, user, user) == 0 &&
                           ::setresuid(user, user, user) == 0;
      const bool holds = is_user && what() && !testing::Test::HasFailure();
      _exit(holds ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_F(FileOnceUsers, AGroupSharesItsMarks) {
  for (const mode_t mode : {02770, 0770}) {
    share(mode);
    EXPECT_TRUE(as(kAlice, [&] { return do_job(*connect_shared()); }));
    struct stat st {};
    ASSERT_EQ(::stat(path("shared/~done/job~").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0660u);
    EXPECT_EQ(st.st_gid, kTeam);
    EXPECT_TRUE(as(kBob, [&] {
      const auto own = connect_shared();
      const auto seen = find(*own);
      return seen && do_job(*own) && find(*own)->owner.id != seen->owner.id;
    }));
    EXPECT_TRUE(as(kAlice, [&] {
      const auto own = connect_shared();
      return forget(*own).value() && !find(*own);
    }));
    EXPECT_FALSE(find(*connect_shared()));
    EXPECT_TRUE(as(kBob, [&] { return do_brief_job(*connect_shared(), "bobs"); }));
    EXPECT_TRUE(as(kAlice, [&] { return do_job(*connect_shared(), "alices"); }));
    EXPECT_EQ(names_in(path("shared/~done")), (std::set<std::string>{"alices~"}));
    fs::remove_all(path("shared"));
  }
}

// Whose file cannot be deleted, but its text can.
TEST_F(FileOnceUsers, InAStickyDirectoryOthersMayForgetAndReplaceAMark) {
  share(01777);
  EXPECT_TRUE(as(kAlice, [&] { return do_job(*connect_shared()); }));
  const std::string file = path("shared/~done/job~");
  EXPECT_TRUE(as(kBob, [&] {
    const auto own = connect_shared();
    return find(*own) && forget(*own).value() && !find(*own);
  }));
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(as(kAlice, [&] {
    const auto own = connect_shared();
    return !find(*own) && !forget(*own).value() && do_brief_job(*own);
  }));
  EXPECT_TRUE(as(kBob, [&] {
    const auto own = connect_shared();
    return !find(*own) && do_job(*own) && find(*own) && forget(*own).value();
  }));
  EXPECT_TRUE(
      as(kAlice, [&] { return connect_shared()->prepare_marks("other", soon()).has_value(); }));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(FileOnceUsers, AFolderThatOthersMayNotReadHidesNothing) {
  share(01777);
  EXPECT_TRUE(as(kAlice, [&] { return do_job(*connect_shared()); }));
  const std::string folder = path("shared/~done/") + std::string(200, 'a') + '%';
  EXPECT_TRUE(as(kBob, [&] { return ::mkdir(folder.c_str(), 0700) == 0; }));
  EXPECT_TRUE(as(kAlice, [&] {
    const auto listed = connect_shared()->list_marks("", soon());
    return listed && listed.value().size() == 1;
  }));
}

TEST_F(FileOnceUsers, AUserWithoutAHomeCanLookAndIsToldBeforeAJobRuns) {
  constexpr uid_t kNobodys = 64'103;
  EXPECT_TRUE(as(kNobodys, [&] {
    const auto own = open_url("file://");
    const auto listed = own->list_marks("", soon());
    const auto forgotten = forget(*own);
    const auto ready = own->prepare_marks("job", soon());
    EXPECT_FALSE(ready);
    EXPECT_EQ(ready.error().code, Errc::denied);
    EXPECT_NE(ready.error().message.find("has no home directory"), std::string::npos);
    return !find(*own) && listed && listed.value().empty() && forgotten && !forgotten.value();
  }));
  fs::remove_all("/tmp/dlock-" + std::to_string(kNobodys));
}

}  // namespace
}  // namespace dlock::test
