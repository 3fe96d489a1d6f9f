// What holds for marks in files alone: what is left by those who are killed, disks that fail, odd
// files, several users.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
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
  // The name of a file that counts for a day.
  static std::string name_of_mark(std::uint64_t fence = 1, const std::string& period = "",
                                  Millis expires = kDay) {
    const auto expiry = static_cast<std::int64_t>(util::utc_now_ms()) + expires.count();
    return std::to_string(fence) + "~" + std::to_string(expiry) + "~" + period;
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
  EXPECT_TRUE(names_in(marks("job")).empty());
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

TEST_F(FileOnce, WhatIsDoneIsDoneAlsoIfItIsSaidAgain) {
  const auto lease = begin(*a);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(complete(*lease));
  const auto next = hold(*b, request("job"));
  ASSERT_TRUE(next);
  EXPECT_TRUE(complete(*lease));
  EXPECT_EQ(names_in(marks("job")).size(), 1u);
  EXPECT_EQ(code_of(try_once(*a, request("job"))), Errc::busy);
  EXPECT_TRUE(renew(*next));
}

TEST_F(FileOnce, AnEarlierMarkThatWouldLastLongerIsReplaced) {
  ASSERT_TRUE(do_job(*a));
  ASSERT_TRUE(do_job(*b, "job", "", Millis{500}));
  EXPECT_EQ(names_in(marks("job")).size(), 1u);
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
  const std::string text = [&] {
    std::ifstream file(marks("other/" + *names_in(marks("other")).begin()));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  write(marks("job/~old"), text);
  write(marks("job/~new"), text);
  fs::last_write_time(marks("job/~old"), fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_FALSE(find(*a));
  EXPECT_FALSE(forget(*a).value());
  EXPECT_EQ(a->list_marks("", soon()).value().size(), 1u);
  ASSERT_TRUE(a->prepare_marks("job", soon()));
  EXPECT_EQ(names_in(marks("job")), std::set<std::string>{"~new"});  // its process may be alive
}

// --- disks

TEST_F(FileOnce, AFullDiskIsFoundBeforeTheJobRunsAndCanBeWaitedForAfterIt) {
  SmallDisk disk(path("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount";
  const auto on_disk = connect("/disk");
  const auto lease = begin(*on_disk);
  ASSERT_TRUE(lease);
  disk.fill();
  const auto ready = on_disk->prepare_marks("job", soon());
  EXPECT_EQ(code_of(ready), Errc::unreachable);
  EXPECT_NE(ready.error().message.find("disk/~done/job"), std::string::npos);
  EXPECT_NE(ready.error().message.find("No space left"), std::string::npos);
  EXPECT_EQ(code_of(complete(*lease)), Errc::unreachable);
  EXPECT_FALSE(find(*on_disk));
  EXPECT_TRUE(renew(*lease));
  EXPECT_TRUE(names_in(path("disk/~done/job")).empty());
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

// --- clocks

TEST_F(FileOnce, AClockThatWasAheadIsSeenFromTheTimeThatIsLeft) {
  ASSERT_TRUE(do_job(*a, "job", "", Millis{60'000}));
  const std::string file = *names_in(marks("job")).begin();
  ASSERT_EQ(::rename(marks("job/" + file).c_str(), marks("job/" + name_of_mark()).c_str()), 0);
  const auto mark = find(*a);
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->age, Millis{0});
  EXPECT_GT(mark->left, kDay - Millis{60'000});
}

TEST_F(FileOnce, TheLongestTimeIsNoOverflow) {
  ASSERT_TRUE(do_job(*a, "job", "", Millis::max()));
  const auto mark = find(*a);
  ASSERT_TRUE(mark);
  EXPECT_GE(mark->age, Millis{0});
  EXPECT_GT(mark->left, kDay * 365 * 1'000);
}

// --- what stands in the place of a mark

TEST_F(FileOnce, WhatIsNoMarkIsNamedAndHidesNothing) {
  ASSERT_TRUE(do_job(*a, "other"));
  const std::string name = name_of_mark();
  const std::string file = marks("job/" + name);
  const auto bad = [&](const std::string& what) {
    const auto found = look(*a);
    ASSERT_FALSE(found) << what;
    EXPECT_EQ(found.error().code, Errc::conflict) << what;
    EXPECT_NE(found.error().message.find(name), std::string::npos) << found.error().message;
    testing::internal::CaptureStderr();
    const auto listed = a->list_marks("", soon());
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(listed) << what;
    EXPECT_EQ(listed.value().size(), 1u) << what;
    EXPECT_NE(said.find(name), std::string::npos) << said;
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("null"), std::string(200, '\0'),
        std::string(100'000, '['), std::string("{\"id\":5,\"dlock\":1,\"remember_ms\":-1}")}) {
    write(file, text);
    bad(text.substr(0, 50));
  }
  ::truncate(file.c_str(), off_t{1} << 30);
  bad("huge");
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
  ::link(marks("other/" + *names_in(marks("other")).begin()).c_str(), file.c_str());
  EXPECT_FALSE(look(*a));
  // Beside one that is good it does not matter, and it can be forgotten.
  ASSERT_TRUE(do_job(*a));
  write(marks("job/" + name_of_mark(std::uint64_t{1} << 60)), "x");
  EXPECT_TRUE(find(*a));
  EXPECT_TRUE(forget(*a).value());
  EXPECT_FALSE(find(*a));
}

TEST_F(FileOnce, OtherNamesAreNoMarks) {
  for (const std::string name :
       {"x", "1~2", "1~", "~~", "-1~99999999999999~", "01~99999999999999~", "1~99999999999999~a/",
        "1~99999999999999~..", "1~99999999999999~12345678901234567", "1~99999999999999999999~",
        "1~99999999999999~a~b"}) {
    if (std::string(name).find('/') == std::string::npos) write(marks("job/" + name), "x");
  }
  write(marks("file"), "x");
  write(marks("%6a/" + name_of_mark()), "x");
  EXPECT_FALSE(find(*a));
  EXPECT_TRUE(a->list_marks("", soon()).value().empty());
  ASSERT_TRUE(do_job(*a));
  EXPECT_EQ(a->list_marks("", soon()).value().size(), 1u);
}

TEST_F(FileOnce, WhatStandsInThePlaceOfAFolderIsRefused) {
  write(marks("file"), "x");
  ::symlink("/tmp", marks("link").c_str());
  for (const std::string key : {"file", "link"}) {
    const auto ready = a->prepare_marks(key, soon());
    EXPECT_EQ(code_of(ready), Errc::denied) << key;
    EXPECT_NE(ready.error().message.find(marks(key)), std::string::npos) << ready.error().message;
    EXPECT_FALSE(look(*a, key));
  }
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

TEST_F(FileOnce, KeysThatAreNotUsedAgainLeaveNoFolders) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(do_job(*a, "live" + std::to_string(i)));
  const std::string padding(250, '%');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(do_brief_job(*a, (i % 2 == 0 ? "" : padding) + std::to_string(i)));
  }
  EXPECT_LT(names_in(marks()).size(), 50u);
  EXPECT_EQ(a->list_marks("live", soon()).value().size(), 20u);
  std::size_t folders = 0;
  for (const auto& entry : fs::recursive_directory_iterator(marks())) {
    folders += entry.is_directory() ? 1 : 0;
  }
  EXPECT_LT(folders, 120u);
}

TEST_F(FileOnce, PeriodsThatAreOverGo) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(do_brief_job(*a, "job", std::to_string(i)));
  ASSERT_TRUE(do_job(*a, "job", "last"));
  EXPECT_EQ(names_in(marks("job")).size(), 1u);
  EXPECT_TRUE(find(*a, "job", "last"));
}

TEST_F(FileOnce, AFolderThatHasGoneIsMadeAgain) {
  const std::string padding(201, 'k');
  for (const std::string& key : {std::string("job"), padding + "job"}) {
    const std::string folder = marks(key == "job" ? key : padding.substr(1) + "%/kjob");
    const auto lease = begin(*a, key);
    ASSERT_TRUE(lease);
    ASSERT_TRUE(fs::exists(folder));
    EXPECT_TRUE(eventually([&] {
      EXPECT_TRUE(b->prepare_marks("other", soon()));
      return !fs::exists(folder);
    }));
    EXPECT_TRUE(complete(*lease));
    EXPECT_TRUE(find(*b, key));
  }
}

TEST_F(FileOnce, FoldersComeAndGoWhileMarksAreMade) {
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
    const std::string folder = path("shared/~done/job");
    struct stat st {};
    ASSERT_EQ(::stat((folder + "/" + *names_in(folder).begin()).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0440u);
    EXPECT_EQ(st.st_gid, kTeam);
    EXPECT_TRUE(as(kBob, [&] {
      const auto own = connect_shared();
      const auto seen = find(*own);
      return seen && do_job(*own) && find(*own)->owner.id != seen->owner.id;
    }));
    EXPECT_EQ(names_in(folder).size(), 1u);
    EXPECT_TRUE(as(kAlice, [&] {
      const auto own = connect_shared();
      return forget(*own).value() && !find(*own);
    }));
    EXPECT_FALSE(find(*connect_shared()));
    EXPECT_TRUE(as(kBob, [&] { return do_brief_job(*connect_shared(), "bobs"); }));
    EXPECT_TRUE(as(kAlice, [&] { return do_job(*connect_shared(), "alices"); }));
    EXPECT_EQ(names_in(path("shared/~done")), std::set<std::string>{"alices"});
    fs::remove_all(path("shared"));
  }
}

TEST_F(FileOnceUsers, InAStickyDirectoryAMarkStaysUntilItsOwnerForgetsIt) {
  share(01777);
  EXPECT_TRUE(as(kAlice, [&] { return do_job(*connect_shared()); }));
  const std::string folder = path("shared/~done/job");
  const std::string file = folder + "/" + *names_in(folder).begin();
  struct stat st {};
  ASSERT_EQ(::stat(file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0444u);
  EXPECT_TRUE(as(kBob, [&] {
    const auto own = connect_shared();
    const auto forgotten = forget(*own);
    EXPECT_FALSE(forgotten);
    EXPECT_EQ(forgotten.error().code, Errc::denied);
    for (const std::string& part : {file, std::to_string(kAlice)}) {
      EXPECT_NE(forgotten.error().message.find(part), std::string::npos)
          << forgotten.error().message;
    }
    return find(*own).has_value();
  }));
  EXPECT_TRUE(as(kAlice, [&] {
    const auto own = connect_shared();
    return forget(*own).value() && !find(*own);
  }));
}

TEST_F(FileOnceUsers, InAStickyDirectoryTheNextUserIsRememberedBesideAnExpiredMark) {
  share(01777);
  EXPECT_TRUE(as(kAlice, [&] { return do_brief_job(*connect_shared()); }));
  EXPECT_TRUE(as(kBob, [&] {
    const auto own = connect_shared();
    return !find(*own) && do_job(*own) && find(*own);
  }));
  EXPECT_EQ(names_in(path("shared/~done/job")).size(), 2u);
  EXPECT_TRUE(as(kBob, [&] { return forget(*connect_shared()).value(); }));
  EXPECT_TRUE(as(kAlice, [&] {
    const auto own = connect_shared();
    return !find(*own) && !forget(*own).value() && do_job(*own, "other");
  }));
  EXPECT_EQ(names_in(path("shared/~done")), std::set<std::string>{"other"});
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
