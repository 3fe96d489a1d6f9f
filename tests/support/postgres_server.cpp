#include "support/postgres_server.hpp"

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/spawn.hpp"

namespace dlock::test {
namespace {

const std::string kServe = TEST_SUPPORT "/postgres/serve.sh";

std::vector<pid_t> children_of(pid_t pid) {
  const std::string number = std::to_string(pid);
  std::ifstream list("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> out;
  for (pid_t child = 0; list >> child;) out.push_back(child);
  return out;
}

bool is_running(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(status, line);
  const auto end = line.rfind(") ");
  return end != std::string::npos && line[end + 2] != 'Z' && line[end + 2] != 'X';
}

}  // namespace

bool PostgresServer::available() {
  if (find_program("psql").empty()) return false;
  try {
    outcome_of({find_program("bash"), "-c",
                ". " TEST_SUPPORT "/postgres/programs.sh; [[ -n $postgres_bin ]]"});
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

PostgresServer::PostgresServer(std::vector<std::string> settings)
    : TestServer("postgres"), settings_(std::move(settings)) {
  launch();
  wait_until_ready();
}

void PostgresServer::launch() {
  std::vector<std::string> argv{find_program("bash"), kServe, directory(), std::to_string(port())};
  argv.insert(argv.end(), settings_.begin(), settings_.end());
  start(argv);
}

bool PostgresServer::answers() const {
  try {
    ask("SELECT 1", "postgres");
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Each connection has a process of its own.
void PostgresServer::signal(int number) {
  if (number == SIGSTOP) ::kill(pid(), number);
  const auto children = children_of(pid());
  if (number != SIGSTOP) ::kill(pid(), number);
  for (const pid_t child : children) ::kill(child, number);
  if (number != SIGKILL) return;
  // Another server may not use the data until they have gone.
  for (const pid_t child : children) {
    while (is_running(child)) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

void PostgresServer::become_standby() {
  kill();
  const std::string data = directory() + "/data";
  outcome_of({find_program("bash"), "-c",
              "cd \"$1\" && touch standby.signal && chown --reference=PG_VERSION standby.signal",
              "bash", data});
  start_again();
}

std::string PostgresServer::url(const std::string& method, const std::string& user,
                                const std::string& database) const {
  return (method == "table" ? "postgres" : "postgres-" + method) + "://" + user +
         (user.empty() ? "" : "@") + "127.0.0.1:" + std::to_string(port()) + '/' + database;
}

std::string PostgresServer::ask(const std::string& sql, const std::string& database) const {
  // Whatever is the server's default.
  std::string text = outcome_of({find_program("env"),
                                 "PGOPTIONS=-c default_transaction_read_only=off -c "
                                 "statement_timeout=0 -c lock_timeout=0",
                                 find_program("psql"), "--no-psqlrc", "--host=" + directory(),
                                 "--port=" + std::to_string(port()), "--username=postgres",
                                 "--no-align", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1",
                                 "--command=" + sql, database});
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace dlock::test
