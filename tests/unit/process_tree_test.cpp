// Each test runs in a process of its own, which is the subreaper above the tree that it makes.
#include "process/process_tree.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "process/proc.hpp"
#include "util/poll.hpp"

namespace dlock {
namespace {

constexpr int kHolds = 42;

// Ends the test's process with a message unless `condition` is true.
void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  _exit(1);
}

// Every process of a job keeps one end of a pipe, so that the other end tells when all are gone,
// and writes to it when it has become what it is to be.
class Alive {
 public:
  Alive() {
    std::array<int, 2> fds{};
    check(pipe(fds.data()) == 0, "pipe");
    here_.reset(fds[0]);
    theirs_.reset(fds[1]);
  }

  // Runs in a child of this process.
  template <class Body>
  pid_t start(Body body) {
    const pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
      alarm(600);            // what a failed test leaves behind ends, too,
      close(STDERR_FILENO);  // and keeps nobody waiting
      body();
      _exit(0);
    }
    return pid;
  }
  void say_ready() const { check(write(theirs_.get(), "x", 1) == 1, "write"); }
  void wait_for(int processes) const {
    for (char c = 0; processes > 0; --processes) {
      check(util::wait_readable(here_.get(), after(Clock::now(), Millis{20'000})), "they start");
      check(read(here_.get(), &c, 1) == 1, "read");
    }
  }
  void give_up() { theirs_.reset(); }
  // Whether nobody has the pipe any more, by then.
  bool all_are_gone(Deadline until) const { return util::wait_readable(here_.get(), until); }
  // Kills until the last child is reaped; then nothing may have the pipe any more.
  void expect_to_end_by(ProcessTree& tree) {
    give_up();
    const Deadline give_up = after(Clock::now(), Millis{20'000});
    for (;;) {
      tree.signal(SIGKILL);
      if (tree.reap(-1).none_left) break;
      check(Clock::now() < give_up, "the tree ends");
      ::poll(nullptr, 0, 1);
    }
    check(all_are_gone({}), "no process is left");
  }

 private:
  Fd here_;
  Fd theirs_;
};

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

template <class Body>
void holds(Body body) {
  EXPECT_EXIT(
      {
        become_subreaper();
        body();
        _exit(kHolds);
      },
      testing::ExitedWithCode(kHolds), "");
}

// Three generations below the child: one ignores SIGTERM, one is a daemon that forked twice.
void start_family(Alive& alive) {
  alive.start([&] {
    signal(SIGTERM, SIG_IGN);
    alive.start([&] {
      setsid();
      const pid_t parent = getpid();
      alive.start([&] {
        setsid();
        while (getppid() == parent) ::poll(nullptr, 0, 1);
        alive.say_ready();
        sleep_for_ever();
      });
    });
    alive.say_ready();
    sleep_for_ever();
  });
  alive.wait_for(2);
}

TEST(ProcessTree, EndsEveryGeneration) {
  holds([] {
    Alive alive;
    ProcessTree tree;
    start_family(alive);
    check(tree.alive().size() == 2, "two of three live");
    alive.expect_to_end_by(tree);
    check(tree.alive().empty(), "none is alive in the end");
  });
}

// A nested run: its supervisor holds a lock for a job whose orphans are below it, and come and go.
TEST(ProcessTree, WhatMayHoldALockDiesWhenNothingElseIsLeft) {
  const auto holds_for = [](const char* name, bool reaps) {
    holds([&] {
      for (int round = 0; round < 10; ++round) {
        Alive job;
        Alive lock;
        ProcessTree tree;
        lock.start([&] {
          prctl(PR_SET_NAME, name);
          become_subreaper();
          if (!reaps) signal(SIGCHLD, SIG_IGN);
          job.start([&] {
            lock.give_up();
            prctl(PR_SET_NAME, "job");
            signal(SIGCHLD, SIG_IGN);
            job.say_ready();
            for (;;) {
              job.start([&] { job.start([] { ::poll(nullptr, 0, 30); }); });
              ::poll(nullptr, 0, 1);
            }
          });
          job.give_up();
          for (;;) {
            if (!reaps || waitpid(-1, nullptr, 0) < 0) ::poll(nullptr, 0, 1);
          }
        });
        job.wait_for(1);
        ::poll(nullptr, 0, 30 + round);
        job.give_up();
        lock.give_up();
        bool was_last = false;
        std::thread next([&] {
          (void)lock.all_are_gone(after(Clock::now(), Millis{20'000}));
          was_last = job.all_are_gone({});
        });
        tree.end([](const Signalled&) {});
        next.join();
        check(was_last, "the lock was free after the job had ended");
      }
    });
  };
  for (const char* name : {"lock supervisor", "lock keeper for"}) {
    holds_for(name, true);
    holds_for(name, false);
  }
}

TEST(ProcessTree, AProcessWithoutItsMainThreadIsAlive) {
  holds([] {
    Alive alive;
    ProcessTree tree;
    const pid_t child = alive.start([&] {
      const pid_t main_thread = gettid();
      std::thread([&alive, main_thread] {
        const std::string stat = "/proc/self/task/" + std::to_string(main_thread) + "/stat";
        for (char state = 'R'; state != 'Z';) {
          std::FILE* file = std::fopen(stat.c_str(), "r");
          check(file && std::fscanf(file, "%*d (%*[^)]) %c", &state) == 1, "its state");
          std::fclose(file);
        }
        alive.start([&] {
          alive.say_ready();
          sleep_for_ever();
        });
        sleep_for_ever();
      }).detach();
      syscall(SYS_exit, 0);  // of this thread alone
    });
    alive.wait_for(1);
    const auto processes = tree.alive();
    check(processes.size() == 2 && processes[0].pid == child, "it and its child are alive");
    alive.expect_to_end_by(tree);
  });
}

TEST(ProcessTree, AZombieIsNotAlive) {
  holds([] {
    Alive alive;
    ProcessTree tree;
    const pid_t child = alive.start([] {});
    siginfo_t info{};
    check(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0, "it ends");
    check(tree.alive().empty(), "it is not alive");
    check(tree.signal(SIGKILL).refused == 0, "it is not signalled");
  });
}

TEST(ProcessTree, EndsItWhenThereIsNoDescriptorLeft) {
  holds([] {
    Alive alive;
    ProcessTree tree;
    start_family(alive);
    check(tree.ready(), "it has what it needs");
    const rlimit limit{40, 40};
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    while (dup(STDERR_FILENO) >= 0) {
    }
    check(errno == EMFILE, "no descriptor is left");
    alive.expect_to_end_by(tree);
  });
}

TEST(ProcessTree, SaysThatThereIsNothingToReserve) {
  holds([] {
    const rlimit limit{40, 40};
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    while (dup(STDERR_FILENO) >= 0) {
    }
    check(!ProcessTree().ready(), "not ready");
  });
}

TEST(ProcessTree, NamesAProcessThatItMayNotSignal) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give its rights up";
  holds([] {
    Alive alive;
    ProcessTree tree;
    const pid_t child = alive.start([&] {
      alive.say_ready();
      sleep_for_ever();
    });
    alive.wait_for(1);
    check(setresuid(65534, 65534, 0) == 0 && seteuid(65534) == 0, "to be nobody");
    const Signalled killed = tree.signal(SIGKILL);
    check(killed.refused == child && killed.error == EPERM, "it is named");
    check(why_alive(killed).find("Operation not permitted") != std::string::npos,
          "with the reason");
    check(seteuid(0) == 0, "to be root");
    alive.expect_to_end_by(tree);
  });
}

TEST(ProcessTree, KnowsWhatIsBelowIt) {
  holds([] {
    Alive alive;
    ProcessTree tree;
    start_family(alive);
    for (const Process& process : tree.alive())
      check(below_us(process.pid) == Below::yes, "it is below");
    for (const pid_t other : {getpid(), getppid(), pid_t{1}}) {
      check(below_us(other) == Below::no, "they are not");
    }
    check(above_us(getppid()) == Below::yes && above_us(1) == Below::yes, "they are above");
    check(below_us(4'194'305) == Below::unknown, "there is no such process");
    check(above_us(0) == Below::unknown, "a process of another pid namespace may be");
    alive.expect_to_end_by(tree);
  });
}

}  // namespace
}  // namespace dlock
