#include "support/mysql_server.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/spawn.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock::test {
namespace {

constexpr Millis kPatience{30'000};

// Of the files, for whoever makes them and whoever uses them.
const std::vector<std::string> kFiles{
    "--innodb-log-file-size=4M", "--innodb-data-file-path=ibdata1:4M:autoextend",
    "--innodb-autoextend-increment=1", "--skip-log-bin", "--skip-name-resolve"};

// Quick to start, and small.
const std::vector<std::string> kSmall{"--performance-schema=off",
                                      "--innodb-buffer-pool-size=8M",
                                      "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
                                      "--key-buffer-size=1M",
                                      "--aria-pagecache-buffer-size=1M",
                                      "--max-connections=300",
                                      "--table-open-cache=100",
                                      "--log-warnings=1"};

constexpr const char* kContent =
    "FLUSH PRIVILEGES;\n"
    "CREATE DATABASE test;\n"
    "CREATE USER app@'%' IDENTIFIED BY 'sesame';\n"
    "GRANT ALL ON test.* TO app@'%';\n";

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string program(const char* name) {
  std::string path = find_program(name);
  // Not on everybody's PATH.
  if (path.empty() && ::access((std::string("/usr/sbin/") + name).c_str(), X_OK) == 0) {
    path = std::string("/usr/sbin/") + name;
  }
  return path;
}

std::vector<std::string> words(const std::vector<std::vector<std::string>>& parts) {
  std::vector<std::string> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  if (::geteuid() == 0) out.emplace_back("--user=root");
  return out;
}

// What it writes; throws if it fails.
std::string outcome_of(const std::vector<std::string>& argv, const std::string& output,
                       const std::vector<std::string>& environment = {}) {
  const pid_t pid = spawn(argv, environment, output);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  std::string text = text_of(output);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(argv[0] + " failed: " + text);
  }
  return text;
}

// The directory of a server that has just been installed, made once for a process.
const std::string& fresh_data() {
  static const TempDir dir;
  static const std::string data = [] {
    const std::string path = dir.path() + "/data";
    // A server that starts removes the temporary tables of others from a common directory.
    const std::vector<std::string> environment{"TMPDIR=" + dir.path()};
    outcome_of(words({{find_program("mariadb-install-db"), "--no-defaults", "--datadir=" + path,
                       "--auth-root-authentication-method=normal", "--skip-test-db"},
                      kFiles,
                      kSmall}),
               dir.path() + "/output", environment);
    std::ofstream(dir.path() + "/content.sql") << kContent;
    // Its input, which spawn() takes from /dev/null.
    outcome_of(words({{"/bin/sh", "-c", "exec \"$@\" <\"$0\"", dir.path() + "/content.sql",
                       program("mariadbd"), "--no-defaults", "--datadir=" + path, "--bootstrap"},
                      kFiles,
                      kSmall}),
               dir.path() + "/output", environment);
    return path;
  }();
  return data;
}

}  // namespace

bool MysqlServer::available() {
  return !program("mariadbd").empty() && !find_program("mariadb").empty() &&
         !find_program("mariadb-install-db").empty();
}

MysqlServer::MysqlServer(MysqlOptions options)
    : options_(std::move(options)), socket_(dir_.path() + "/socket") {
  std::filesystem::copy(fresh_data(), dir_.path() + "/data",
                        std::filesystem::copy_options::recursive);
  start();
}

MysqlServer::~MysqlServer() { kill(); }

void MysqlServer::start() {
  std::vector<std::string> argv = words(
      {{program("mariadbd"), "--no-defaults", "--datadir=" + dir_.path() + "/data",
        "--socket=" + socket_, "--bind-address=127.0.0.1", "--port=" + std::to_string(port()),
        "--pid-file=" + dir_.path() + "/pid", "--tmpdir=" + dir_.path(), "--skip-slave-start"},
       kFiles,
       kSmall});
  for (const std::string& setting : options_.settings) argv.push_back("--" + setting);
  pid_ = spawn(argv, options_.environment, dir_.path() + "/output");
  const Deadline deadline = after(Clock::now(), kPatience);
  while (!answers()) {
    if (!runs(WNOHANG)) throw std::runtime_error("mariadbd does not run: " + complaints());
    if (Clock::now() >= deadline) {
      kill();
      throw std::runtime_error("mariadbd does not answer: " + complaints());
    }
    // What is waited for is the server's own doing, of which nothing tells us.
    std::this_thread::sleep_for(Millis{2});
  }
}

// It greets who connects.
bool MysqlServer::answers() const {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socket_.copy(name.sun_path, sizeof name.sun_path - 1);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return false;
  const timeval patience{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char byte = 0;
  return ::recv(fd.get(), &byte, 1, 0) == 1;
}

bool MysqlServer::runs(int wait_flags) {
  int status = 0;
  pid_t got;
  do {
    got = ::waitpid(pid_, &status, wait_flags);
  } while (got < 0 && errno == EINTR);
  if (got == 0 || (got > 0 && WIFSTOPPED(status))) return true;
  pid_ = -1;
  return false;
}

std::string MysqlServer::complaints() const { return text_of(dir_.path() + "/output"); }

std::string MysqlServer::url(const std::string& method, const std::string& user) const {
  return "mysql-" + method + "://" + user + (user.empty() ? "" : "@") +
         "127.0.0.1:" + std::to_string(port()) + "/test";
}

void MysqlServer::pause() {
  if (pid_ > 0) ::kill(pid_, SIGSTOP);
  if (pid_ < 0 || !runs(WUNTRACED)) throw std::runtime_error("mariadbd has ended");
}

void MysqlServer::resume() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void MysqlServer::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (runs(0)) {
  }
}

void MysqlServer::start_again() {
  kill();
  start();
}

std::string MysqlServer::ask(const std::string& sql) const {
  const TempDir dir;
  std::string text =
      outcome_of({find_program("mariadb"), "--no-defaults", "--user=root", "--socket=" + socket_,
                  "--batch", "--skip-column-names", "--execute=" + sql, "test"},
                 dir.path() + "/output");
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace dlock::test
