#include "support/redis_server.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/resp.hpp"
#include "support/spawn.hpp"

namespace dlock::test {
namespace {
constexpr Millis kPatience{20'000};
}

bool RedisServer::available() { return !find_program("redis-server").empty(); }

RedisServer::RedisServer(RedisOptions options)
    : options_(std::move(options)), socket_(dir_.path() + "/socket") {
  std::ofstream conf(dir_.path() + "/redis.conf");
  conf << "bind 127.0.0.1\nport " << port() << "\nunixsocket " << socket_ << "\ndir " << dir_.path()
       << "\nlogfile " << dir_.path() << "/log\nloglevel warning\ndaemonize no\nsave \"\"\n"
       << "appendonly no\n";
  for (const std::string& line : options_.settings) {
    conf << line << '\n';
    if (line.starts_with("requirepass ")) password_ = line.substr(line.find(' ') + 1);
  }
  conf.close();
  start();
}

RedisServer::~RedisServer() { kill(); }

void RedisServer::start() {
  pid_ =
      spawn({find_program("redis-server"), dir_.path() + "/redis.conf"},
            options_.clock != nullptr ? options_.clock->environment() : std::vector<std::string>(),
            dir_.path() + "/output");
  const Deadline deadline = after(Clock::now(), kPatience);
  while (!answers()) {
    if (!runs(WNOHANG)) throw std::runtime_error("redis-server does not run: " + complaints());
    if (Clock::now() >= deadline) {
      kill();
      throw std::runtime_error("redis-server does not answer: " + complaints());
    }
    // What is waited for is the server's own doing, of which nothing tells us.
    std::this_thread::sleep_for(Millis{1});
  }
}

bool RedisServer::answers() const {
  try {
    return !run({"PING"}).starts_with("LOADING");
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool RedisServer::runs(int wait_flags) {
  int status = 0;
  pid_t got;
  do {
    got = ::waitpid(pid_, &status, wait_flags);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got > 0 && WIFSTOPPED(status))) return true;
  pid_ = -1;
  return false;
}

std::string RedisServer::complaints() const {
  std::ostringstream text;
  for (const char* name : {"/output", "/log"}) text << std::ifstream(dir_.path() + name).rdbuf();
  return text.str();
}

void RedisServer::pause() {
  if (pid_ > 0) ::kill(pid_, SIGSTOP);
  if (pid_ < 0 || !runs(WUNTRACED)) throw std::runtime_error("redis-server has ended");
}

void RedisServer::resume() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void RedisServer::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (runs(0)) {
  }
}

void RedisServer::start_again() {
  kill();
  start();
}

std::string RedisServer::run(const std::vector<std::string>& words) const {
  return redis_command(socket_, password_, words, after(Clock::now(), kPatience));
}

}  // namespace dlock::test
