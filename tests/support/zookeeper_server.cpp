#include "support/zookeeper_server.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/spawn.hpp"
#include "support/zookeeper_client.hpp"

namespace dlock::test {
namespace {

constexpr Millis kPatience{30'000};
constexpr const char* kJar = "/usr/share/java/zookeeper.jar";
constexpr const char* kClassPath =
    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";  // errors go to stderr

// Quick to start, small, and without files outside of its directory.
const std::vector<std::string> kJavaFlags{"-XX:TieredStopAtLevel=1",
                                          "-XX:+UseSerialGC",
                                          "-XX:-UsePerfData",
                                          "-Xshare:auto",
                                          "-Xmx128m",
                                          "-Djava.net.preferIPv4Stack=true",
                                          "-Dzookeeper.jmx.log4j.disable=true",
                                          "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"};

}  // namespace

bool ZooKeeperServer::available() {
  return !find_program("java").empty() && std::filesystem::exists(kJar);
}

ZooKeeperServer::ZooKeeperServer(ZooKeeperOptions options)
    : TestServer("zookeeper"), options_(std::move(options)) {
  std::filesystem::create_directory(directory() + "/data");
  std::ofstream conf(directory() + "/zoo.cfg");
  conf << "dataDir=" << directory() << "/data\nclientPort=" << port()
       << "\nclientPortAddress=127.0.0.1\ntickTime=100\nminSessionTimeout=200\n"
       << "maxSessionTimeout=60000\nmaxClientCnxns=0\nadmin.enableServer=false\n"
       << "4lw.commands.whitelist=*\n";
  for (const std::string& line : options_.settings) conf << line << '\n';
  conf.close();
  if (options_.member != 0) return;
  launch();
  wait_until_ready();
}

void ZooKeeperServer::launch() {
  if (options_.member != 0) {
    std::ofstream(directory() + "/data/myid") << options_.member << '\n';
  }
  std::vector<std::string> argv{find_program("java")};
  argv.insert(argv.end(), kJavaFlags.begin(), kJavaFlags.end());
  argv.insert(argv.end(), options_.properties.begin(), options_.properties.end());
  for (const char* word :
       {"-cp", kClassPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain"}) {
    argv.emplace_back(word);
  }
  argv.push_back(directory() + "/zoo.cfg");
  start(argv);
}

std::string ZooKeeperServer::ask(const std::string& word) const {
  return zookeeper_ask(port(), word);
}

long ZooKeeperServer::monitored(const std::string& name) const {
  std::istringstream lines(ask("mntr"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + '\t')) return std::stol(line.substr(name.size() + 1));
  }
  return -1;
}

std::string ZooKeeperServer::mode() const {
  const std::string text = ask("srvr");
  const auto at = text.find("\nMode: ");
  return at == std::string::npos ? "" : text.substr(at + 7, text.find('\n', at + 1) - at - 7);
}

bool ZooKeeperServer::clear() const {
  try {
    ZooKeeperClient client(port());
    for (const std::string& name : client.children("/")) {
      if (name != "zookeeper") client.remove_all('/' + name);
    }
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void ZooKeeperServer::erase() {
  kill();
  std::filesystem::remove_all(directory() + "/data");
  std::filesystem::create_directory(directory() + "/data");
}

ZooKeeperEnsemble::ZooKeeperEnsemble(std::vector<std::string> settings) {
  // Twice the tick of a single server, and room for a machine that is busy: a follower that is
  // late by syncLimit ticks is thrown out.
  std::vector<std::string> all{"tickTime=200", "initLimit=50", "syncLimit=25"};
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    all.push_back("server." + std::to_string(i + 1) +
                  "=127.0.0.1:" + std::to_string(peer_ports_[2 * i].port()) + ':' +
                  std::to_string(peer_ports_[2 * i + 1].port()));
  }
  all.insert(all.end(), settings.begin(), settings.end());
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    servers_[i] = std::make_unique<ZooKeeperServer>(
        ZooKeeperOptions{.settings = all, .member = static_cast<int>(i + 1)});
    servers_[i]->launch();
  }
  for (auto& server : servers_) server->wait_until_ready();
}

std::string ZooKeeperEnsemble::addresses() const {
  std::string out;
  for (const auto& server : servers_) out += (out.empty() ? "" : ",") + server->address();
  return out;
}

std::size_t ZooKeeperEnsemble::leader() {
  for (const Deadline deadline = after(Clock::now(), kPatience); Clock::now() < deadline;) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i]->mode() == "leader") return i;
    }
    std::this_thread::sleep_for(Millis{5});
  }
  throw std::runtime_error("the ensemble has no leader");
}

void ZooKeeperEnsemble::repair() {
  for (auto& server : servers_) {
    server->resume();
    if (server->pid() < 0) server->launch();
  }
  for (auto& server : servers_) server->wait_until_ready();
}

}  // namespace dlock::test
