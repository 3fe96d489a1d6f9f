#include "support/test_server.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/spawn.hpp"
#include "util/clock.hpp"

namespace dlock::test {
namespace {
// A JVM on a machine that is busy with other tests.
constexpr Millis kPatience{30'000};
}  // namespace

void TestServer::start(const std::vector<std::string>& argv,
                       const std::vector<std::string>& environment) {
  pid_ = spawn(argv, environment, directory() + "/output");
}

void TestServer::wait_until_ready() {
  const Deadline deadline = after(Clock::now(), kPatience);
  while (!answers()) {
    if (!runs(WNOHANG)) throw std::runtime_error(name_ + " does not run: " + output());
    if (Clock::now() >= deadline) {
      kill();
      throw std::runtime_error(name_ + " does not answer: " + output());
    }
    // What is waited for is the server's own doing, of which nothing tells us.
    std::this_thread::sleep_for(Millis{2});
  }
}

bool TestServer::runs(int wait_flags) {
  int status = 0;
  pid_t got;
  do {
    got = ::waitpid(pid_, &status, wait_flags);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got > 0 && WIFSTOPPED(status))) return true;
  pid_ = -1;
  return false;
}

std::string TestServer::output() const {
  std::ostringstream text;
  text << std::ifstream(directory() + "/output").rdbuf();
  return text.str();
}

void TestServer::pause() {
  disturbed_ = true;
  if (pid_ > 0) signal(SIGSTOP);
  if (pid_ < 0 || !runs(WUNTRACED)) throw std::runtime_error(name_ + " has ended");
}

void TestServer::resume() {
  if (pid_ > 0) signal(SIGCONT);
}

void TestServer::kill() {
  if (pid_ < 0) return;
  disturbed_ = true;
  signal(SIGKILL);
  while (runs(0)) {
  }
}

void TestServer::signal(int number) { ::kill(pid_, number); }

void TestServer::start_again() {
  kill();
  launch();
  wait_until_ready();
}

}  // namespace dlock::test
