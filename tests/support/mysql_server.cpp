#include "support/mysql_server.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/spawn.hpp"
#include "util/fd.hpp"

namespace dlock::test {
namespace {

const std::string kFiles = TEST_SUPPORT "/mysql";

std::string program(const char* name) {
  std::string path = find_program(name);
  // Not on everybody's PATH.
  if (path.empty() && ::access((std::string("/usr/sbin/") + name).c_str(), X_OK) == 0) {
    path = std::string("/usr/sbin/") + name;
  }
  return path;
}

// The directory of a server that has just been installed, made once for a process.
const std::string& fresh_data() {
  static const TempDir dir;
  static const std::string data = [] {
    const char* const made = std::getenv("TEST_MYSQL_DATA");
    if (made != nullptr && std::filesystem::is_directory(made)) return std::string(made);
    const std::string path = dir.path() + "/data";
    outcome_of({find_program("bash"), kFiles + "/install.sh", path});
    return path;
  }();
  return data;
}

void open_to_all(const std::string& directory) {
  namespace fs = std::filesystem;
  fs::permissions(directory, fs::perms::all);
  for (const auto& file : fs::recursive_directory_iterator(directory)) {
    const auto mode = fs::perms::others_read | fs::perms::others_write | fs::perms::group_read |
                      fs::perms::group_write;
    const auto search = fs::perms::group_exec | fs::perms::others_exec;
    fs::permissions(file, file.is_directory() ? mode | search : mode, fs::perm_options::add);
  }
}

}  // namespace

bool MysqlServer::is_mariadb() { return std::getenv("TEST_MYSQL_ROOT") == nullptr; }

bool MysqlServer::available() {
  if (!is_mariadb()) return !find_program("mariadb").empty();
  return !program("mariadbd").empty() && !find_program("mariadb").empty() &&
         !find_program("mariadb-install-db").empty();
}

MysqlServer::MysqlServer(MysqlOptions options)
    : TestServer(is_mariadb() ? "mariadbd" : "mysqld"),
      options_(std::move(options)),
      socket_(directory() + "/socket") {
  std::filesystem::copy(fresh_data(), directory() + "/data",
                        std::filesystem::copy_options::recursive);
  if (options_.is_open_to_all) open_to_all(directory());
  launch();
  wait_until_ready();
}

void MysqlServer::launch() {
  std::vector<std::string> argv{program("mariadbd"), "--defaults-file=" + kFiles + "/server.cnf"};
  if (!is_mariadb()) {
    argv = {find_program("bash"), kFiles + "/mysqld.sh",
            "--defaults-file=" + kFiles + "/mysql.cnf"};
  }
  for (const std::string& setting :
       {"datadir=" + directory() + "/data", "socket=" + socket_, "port=" + std::to_string(port()),
        "pid-file=" + directory() + "/pid", "tmpdir=" + directory()}) {
    argv.push_back("--" + setting);
  }
  if (::geteuid() == 0) argv.emplace_back("--user=root");
  for (const std::string& setting : options_.settings) argv.push_back("--" + setting);
  start(argv, options_.environment);
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

std::string MysqlServer::url(const std::string& method, const std::string& user,
                             const std::string& database) const {
  return (method == "table" ? "mysql" : "mysql-" + method) + "://" + user +
         (user.empty() ? "" : "@") + "127.0.0.1:" + std::to_string(port()) + '/' + database;
}

std::string MysqlServer::ask(const std::string& sql) const {
  std::string text =
      outcome_of({find_program("mariadb"), "--no-defaults", "--user=root", "--socket=" + socket_,
                  "--batch", "--skip-column-names", "--execute=" + sql, "test"});
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace dlock::test
