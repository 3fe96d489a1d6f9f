// The first ask carries the set-up of the session in front of it, in the same packet: what the
// server's administrator, or its init_connect, has made the default must not matter to locks.
#include "backends/mysql/connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "backends/mysql/errors.hpp"
#include "backends/mysql/library.hpp"
#include "backends/mysql/sql.hpp"
#include "backends/mysql/worker.hpp"
#include "backends/sql/servers.hpp"
#include "util/exchange.hpp"
#include "util/fd.hpp"
#include "util/jitter.hpp"
#include "util/poll.hpp"

namespace dlock::mysql {
namespace {

using sql::Reply;

// How long close() waits until the goodbye is sent: an idle socket takes it at once.
constexpr Millis kGoodbye{200};

// MariaDB carries out what is in /*M! */ and MySQL what is in /*!50708 */, from that version on.
// init_connect may have begun a transaction.  With completion_type, each end of a transaction
// begins the next one, or ends the session.
constexpr std::string_view kSetUp =
    "ROLLBACK AND NO CHAIN NO RELEASE; SET SESSION completion_type=NO_CHAIN,"
    " sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone='+00:00',"
    " autocommit=1, sql_safe_updates=0, sql_quote_show_create=1, sql_select_limit=DEFAULT,"
    " wait_timeout=28800,"
    " innodb_lock_wait_timeout=50, lock_wait_timeout=10"
    " /*M!100101 , max_statement_time=0 */"
    " /*M!100300 , idle_transaction_timeout=0, idle_readonly_transaction_timeout=0,"
    " idle_write_transaction_timeout=0 */"
    " /*!50708 , max_execution_time=0 */;"
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;"
    "SET NAMES utf8mb4;";
constexpr std::size_t kAnswersOfSetUp = 4;

enum class Waited { done, cancelled, late };

Waited wait_for(const Worker& worker, Deadline deadline, Cancel cancel) {
  std::array<pollfd, 2> fds{{{worker.done_fd(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
  util::poll(fds, deadline);
  if (fds[0].revents != 0) return Waited::done;
  return fds[1].revents != 0 ? Waited::cancelled : Waited::late;
}

void log_reply(const std::string& server, const std::string& asked, const Reply& reply,
               Deadline sent) {
  if (!util::exchanges_shown()) return;
  util::log_exchange(
      server, asked,
      reply.ok() ? "answers: " + std::to_string(reply.answers.size()) : reply.error->message, sent);
}

Reply failed(Errc code, std::string message) {
  return {.answers = {}, .trouble = sql::Trouble::other, .error = Error{code, std::move(message)}};
}

}  // namespace

struct Connection::State {
  std::shared_ptr<Worker> worker;  // none: closed
  Worker::Greeting greeting;
  std::shared_ptr<const Place> place;
  std::string server;
  bool is_set_up = false;
  bool sets_up = false;  // what is under way
  bool under_way = false;
  Deadline sent{};
  std::string asked;  // for -vv
  std::string why_broken;
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::~Connection() { close(); }

namespace {

/// As it is done by open() for each host.
Result<std::pair<std::shared_ptr<Worker>, Worker::Greeting>> connect_to(
    const Library& library, const std::shared_ptr<const Place>& place, const HostPort& host,
    Deadline deadline, Cancel cancel) {
  const std::string server = place->shown_host(host);
  const Deadline start = Clock::now();
  auto worker = Worker::start(library, place, host);
  if (!worker) return worker.error();
  switch (wait_for(**worker, deadline, cancel)) {
    case Waited::cancelled:
      worker.value()->leave();
      return Error{Errc::cancelled, server + ": stopped connecting"};
    case Waited::late:
      worker.value()->leave();
      return Error{Errc::unreachable, server + ": no answer" + sql::within(start, deadline)};
    case Waited::done:
      break;
  }
  auto greeting = worker.value()->greeting();
  if (!greeting) return greeting.error();
  return std::pair(std::move(*worker), *greeting);
}

// Whether the server belongs to a cluster of several that take writes, if that is not known yet. On
// one, what is read is not to be older than what the other servers have committed.  And a COMMIT
// that a Galera cluster refuses is to be an error: with wsrep_retry_autocommit, which is 1 by
// default, MariaDB (10.11) says it once more if it came with other statements in one text, commits
// nothing, and reports success.
Result<void> join_cluster(Connection& connection, const Place& place, Deadline deadline,
                          Cancel cancel) {
  using Is = Place::Cluster;
  if (*place.cluster == Is::unknown) {
    const Reply reply = connection.ask(
        "SHOW VARIABLES WHERE (Variable_name = 'wsrep_on' AND Value = 'ON') OR (Variable_name = "
        "'group_replication_single_primary_mode' AND Value = 'OFF')",
        deadline, cancel);
    if (!reply.ok()) return *reply.error;
    const auto& rows = reply.answers.at(0).rows;
    *place.cluster = rows.empty()                                    ? Is::no
                     : rows.front().at(0).value_or("") == "wsrep_on" ? Is::galera
                                                                     : Is::group;
  }
  if (*place.cluster == Is::no) return {};
  const Reply reply = connection.ask(
      *place.cluster == Is::galera ? "SET SESSION wsrep_sync_wait = 7, wsrep_retry_autocommit = 0"
                                   : "SET SESSION group_replication_consistency = 'BEFORE'",
      deadline, cancel);
  if (!reply.ok()) return *reply.error;
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::shared_ptr<const Place>& place,
                                                     Deadline deadline, Cancel cancel) {
  const auto library = load_library();
  if (!library) return library.error();
  const auto dial = [&](const HostPort& host, Deadline its) -> Result<std::unique_ptr<Connection>> {
    const Deadline begun = Clock::now();
    auto got = connect_to(*library.value(), place, host, its, cancel);
    util::log_exchange(place->shown_host(host), "connect", got ? "connected" : got.error().message,
                       begun);
    if (!got) return got.error();
    auto state = std::make_unique<State>();
    state->server = place->shown_host(host);
    state->worker = std::move(got->first);
    state->greeting = got->second;
    state->place = place;
    auto connection = std::unique_ptr<Connection>(new Connection(std::move(state)));
    if (auto joined = join_cluster(*connection, *place, its, cancel); !joined) {
      return joined.error();
    }
    return connection;
  };
  return sql::open_primary<Connection>(place->hosts, *place->primary, place->connect_timeout,
                                       kWritable, deadline, cancel, dial);
}

void Connection::send(const std::string& text) {
  if (broken()) return;
  state_->sets_up = !state_->is_set_up;
  state_->under_way = true;
  state_->sent = Clock::now();
  if (util::exchanges_shown()) state_->asked = outline(text);
  state_->worker->ask(state_->sets_up ? std::string(kSetUp) + text : text);
}

Reply Connection::receive(Deadline deadline, Cancel cancel) {
  if (broken()) return failed(Errc::unreachable, state_->why_broken);
  Worker& worker = *state_->worker;
  const Waited end = wait_for(worker, deadline, cancel);
  if (end != Waited::done) {
    util::log_exchange(state_->server, state_->asked, "no reply yet", state_->sent);
  }
  switch (end) {
    case Waited::cancelled:
      return failed(Errc::cancelled, state_->server + ": stopped waiting for an answer");
    case Waited::late:
      return failed(Errc::unreachable,
                    state_->server + ": no answer" + sql::within(state_->sent, deadline));
    case Waited::done:
      break;
  }
  Worker::Outcome reply = worker.reply();
  state_->under_way = false;
  if (state_->sets_up) {
    const std::size_t dropped = std::min(reply.answers.size(), kAnswersOfSetUp);
    state_->is_set_up = dropped == kAnswersOfSetUp;
    reply.answers.erase(reply.answers.begin(),
                        reply.answers.begin() + static_cast<std::ptrdiff_t>(dropped));
  }
  if (reply.ok() && reply.answers.empty()) {
    reply = {failed(Errc::unreachable, state_->server + ": sent fewer answers than it was asked "
                                                        "for; is it a MySQL server?"),
             true};
  }
  log_reply(state_->server, state_->asked, reply, state_->sent);
  if (reply.ends_connection) close(reply.error->message);
  return reply;
}

bool Connection::under_way() const { return !broken() && state_->under_way; }
int Connection::fd() const { return broken() ? -1 : state_->greeting.fd; }
std::uint64_t Connection::id() const { return state_->greeting.id; }
const std::string& Connection::server() const { return state_->server; }
bool Connection::broken() const { return !state_->worker; }

void Connection::close(const std::string& why) {
  const auto worker = std::move(state_->worker);
  if (!worker) return;
  state_->why_broken = why;
  if (worker->leave()) util::wait_readable(worker->done_fd(), after(Clock::now(), kGoodbye));
}

}  // namespace dlock::mysql
