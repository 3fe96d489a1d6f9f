// PR_SET_PDEATHSIG means the death of the thread that forked, not of its process.  So one thread,
// which lives as long as the process, does all the forking.
#include "support/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/temp_dir.hpp"
#include "util/fd.hpp"

namespace dlock::test {
namespace {

// Strings as execve(2) wants them.
class Strings {
 public:
  explicit Strings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& text : strings_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

struct Program {
  Strings argv;
  Strings environment;
  int in;
  int out;
};

// In the child of a process with threads: system calls only.
[[noreturn]] void become(Program& program, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before it could matter
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(program.in, 0);
  ::dup2(program.out, 1);
  ::dup2(program.out, 2);
#ifdef SYS_close_range
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
#endif
  char** const argv = program.argv.get();
  ::execve(argv[0], argv, program.environment.get());
  ::_exit(127);
}

class Spawner {
 public:
  Spawner() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the threads of the tests
    std::thread([this] { run(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // The pid, or -1 with errno set.
  pid_t spawn(Program& program) {
    const std::lock_guard turn(turn_);
    std::unique_lock lock(mutex_);
    next_ = &program;
    changed_.notify_all();
    changed_.wait(lock, [this] { return next_ == nullptr; });
    errno = error_;
    return pid_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return next_ != nullptr; });
      const pid_t parent = ::getpid();
      pid_ = ::fork();
      if (pid_ == 0) become(*next_, parent);
      error_ = errno;
      next_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex turn_;  // of the callers
  std::mutex mutex_;
  std::condition_variable changed_;
  Program* next_ = nullptr;
  pid_t pid_ = -1;
  int error_ = 0;
};

}  // namespace

std::string find_program(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + '/' + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

pid_t spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
            const std::string& output) {
  std::vector<std::string> all = environment;  // the first one of a name counts
  for (char** entry = ::environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  const Fd in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd out(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  Program program{Strings(argv), Strings(all), in.get(), out.get()};
  static Spawner& spawner = *new Spawner;  // never ends, as its thread does not
  const pid_t pid = spawner.spawn(program);
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start " + argv[0]);
  return pid;
}

std::string outcome_of(const std::vector<std::string>& argv) {
  const TempDir dir;
  const std::string output = dir.path() + "/output";
  const pid_t pid = spawn(argv, {}, output);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(argv[0] + " failed: " + text.str());
  }
  return text.str();
}

}  // namespace dlock::test
