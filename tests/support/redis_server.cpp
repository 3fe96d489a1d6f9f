#include "support/redis_server.hpp"

#include <fstream>
#include <stdexcept>

#include "support/resp.hpp"
#include "support/spawn.hpp"

namespace dlock::test {
namespace {
constexpr Millis kPatience{20'000};
}

bool RedisServer::available() { return !find_program("redis-server").empty(); }

RedisServer::RedisServer(RedisOptions options)
    : TestServer("redis-server"), options_(std::move(options)), socket_(directory() + "/socket") {
  std::ofstream conf(directory() + "/redis.conf");
  conf << "bind 127.0.0.1\nport " << port() << "\nunixsocket " << socket_ << "\ndir " << directory()
       << "\nlogfile \"\"\nloglevel warning\ndaemonize no\nsave \"\"\n"
       << "appendonly no\n";
  for (const std::string& line : options_.settings) {
    conf << line << '\n';
    if (line.starts_with("requirepass ")) password_ = line.substr(line.find(' ') + 1);
  }
  conf.close();
  launch();
  wait_until_ready();
}

void RedisServer::launch() {
  start({find_program("redis-server"), directory() + "/redis.conf"},
        options_.clock != nullptr ? options_.clock->environment() : std::vector<std::string>());
}

bool RedisServer::answers() const {
  try {
    return !command("PING").starts_with("LOADING");
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string RedisServer::run(const std::vector<std::string>& words) const {
  return redis_command(socket_, password_, words, after(Clock::now(), kPatience));
}

}  // namespace dlock::test
