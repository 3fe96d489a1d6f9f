// Pipeline. All statements of a text go out at once, with one Sync behind them: after an error the
//           server skips the rest.  What is not between BEGIN and COMMIT is committed at the Sync.
//           Each statement has a snapshot and a statement_timestamp() of its own, which those of
//           one simple query have not.
// Set-up.   The first text carries it in front: what the server's administrator has made the
//           default must not matter to locks.
// Network.  A server that has half of a text waits for the rest, with the row of the key locked: it
//           looks whether the client is there.
// Standby.  A commit that a synchronous standby has not acknowledged is no answer: the server says
//           so in a warning only.
#include "backends/postgres/connection.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/postgres/errors.hpp"
#include "backends/postgres/text.hpp"
#include "backends/sql/servers.hpp"
#include "util/exchange.hpp"
#include "util/poll.hpp"

namespace dlock::postgres {
namespace {

using sql::Reply;

constexpr std::size_t kMostBytes = std::size_t{64} * 1024 * 1024;  // in answer to one text
constexpr std::size_t kBytesOfField = 48;  // what a field costs beside its text, about
constexpr int kWithTransactionTimeout = 170'000;

// The division fails if the session is not that of the process which has greeted us: a pooler is
// between.
std::string set_up(const Library& library, PGconn* line, const Place& place) {
  const auto set = [](const char* name, const std::string& value) {
    return std::string(", set_config('") + name + "', " + value + ", false)";
  };
  std::string out = "BEGIN;SELECT ";
  out += place.has_pooler
             ? "1"
             : "1 / (pg_backend_pid() = " + std::to_string(library.PQbackendPID(line)) + ")::int";
  for (const char* name : {"statement_timeout", "lock_timeout", "idle_session_timeout"}) {
    out += set(name, "'0'");
  }
  out += set("idle_in_transaction_session_timeout", "'3s'");  // after an error, too
  if (library.PQserverVersion(line) >= kWithTransactionTimeout) {
    out += set("transaction_timeout", "'0'");
  }
  out += set("default_transaction_isolation", "'read committed'") +
         set("default_transaction_read_only", "'off'") +
         set("default_transaction_deferrable", "'off'") +
         set("synchronous_commit",
             "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' "
             "ELSE 'on' END") +
         set("client_encoding", "current_setting('server_encoding')") + set("timezone", "'UTC'") +
         set("datestyle", "'ISO'") + set("intervalstyle", "'postgres'") +
         set("tcp_keepalives_idle", "'10'") + set("tcp_keepalives_interval", "'5'") +
         set("tcp_keepalives_count", "'3'") + set("tcp_user_timeout", "'30s'") +
         set("client_connection_check_interval",
             "CASE WHEN version() LIKE '%linux%' THEN '1s' ELSE '0' END");
  return out + ";COMMIT;";
}
constexpr std::size_t kAnswersOfSetUp = 3;

Reply failed(Errc code, std::string message) {
  return {.answers = {}, .trouble = sql::Trouble::other, .error = Error{code, std::move(message)}};
}

}  // namespace

struct Connection::State {
  const Library* library = nullptr;
  std::shared_ptr<const Place> place;
  std::string server;
  Line line;  // none: closed
  std::string why_broken;
  bool is_set_up = false;

  // The text that is under way.
  bool is_under_way = false;
  Reply reply;
  std::size_t set_up_answers = 0;  // still to come
  std::size_t missing = 0;         // answers that are still to come, with those
  sql::Answer answer;              // as far as it has come
  std::size_t bytes = 0;
  std::string state;  // SQLSTATE of its error
  bool is_unacknowledged = false;
  bool is_given_up = false;  // what it sends makes no sense
  Deadline sent{};
  std::string asked;  // for -vv

  void on_result(const PGresult* result);
  void take_rows(const PGresult* result);
  void give_up(const std::string& why) {
    if (!reply.error) reply = failed(Errc::unreachable, server + ": " + why);
    is_given_up = true;
  }
  std::string field(const PGresult* result, int code) const {
    const char* const text = library->PQresultErrorField(result, code);
    return text == nullptr ? "" : text;
  }
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::~Connection() { close(); }

namespace {

// The name of the function is the same in every language.
void on_notice(void* is_unacknowledged, const PGresult* notice) {
  const auto library = load_library();
  const char* const function = library.value()->PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
  if (function != nullptr && std::strcmp(function, "SyncRepWaitForLSN") == 0) {
    *static_cast<bool*>(is_unacknowledged) = true;
  }
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::shared_ptr<const Place>& place,
                                                     Deadline deadline, Cancel cancel) {
  const auto library = load_library();
  if (!library) return library.error();
  const auto call = [&](const HostPort& host, Deadline its) -> Result<std::unique_ptr<Connection>> {
    const Deadline begun = Clock::now();
    const auto known = std::make_shared<Place>(*place);
    auto line = dial(*library.value(), *known, host, its, cancel);
    util::log_exchange(place->shown_host(host), "connect",
                       line ? "connected" : line.error().message, begun);
    if (!line) return line.error();
    auto state = std::make_unique<State>();
    state->library = library.value();
    state->place = known;
    state->server = place->shown_host(host);
    state->line = std::move(*line);
    library.value()->PQsetNoticeReceiver(state->line.get(), on_notice, &state->is_unacknowledged);
    return std::unique_ptr<Connection>(new Connection(std::move(state)));
  };
  return sql::open_primary<Connection>(place->hosts, *place->primary, place->connect_timeout,
                                       kWritable, deadline, cancel, call);
}

void Connection::send(const std::string& text) {
  if (broken()) return;
  const Library& library = *state_->library;
  PGconn* const line = state_->line.get();
  state_->is_under_way = true;
  state_->reply = {};
  state_->state.clear();
  state_->is_unacknowledged = false;
  state_->answer = {};
  state_->bytes = 0;
  state_->sent = Clock::now();
  if (util::exchanges_shown()) state_->asked = outline(text);
  state_->set_up_answers = state_->is_set_up ? 0 : kAnswersOfSetUp;
  const std::string all = state_->is_set_up ? text : set_up(library, line, *state_->place) + text;
  const std::vector<std::string> statements = statements_of(all);
  state_->missing = statements.size();
  bool ok = true;
  for (const std::string& statement : statements) {
    ok = ok && library.PQsendQueryParams(line, statement.c_str(), 0, nullptr, nullptr, nullptr,
                                         nullptr, 0) == 1;
    if (&statement == &statements.front()) library.PQsetSingleRowMode(line);
  }
  ok = ok && library.PQpipelineSync(line) == 1;
  if (!ok) {
    close(connect_error_of(library.PQerrorMessage(line), state_->server, *state_->place).message);
  }
}

void Connection::State::on_result(const PGresult* result) {
  switch (library->PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
      is_under_way = false;
      if (!reply.error && missing > 0) give_up("sent fewer answers than it was asked for");
      return;
    case PGRES_PIPELINE_ABORTED:
      return;
    case PGRES_SINGLE_TUPLE:
      take_rows(result);
      return;
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
      take_rows(result);
      if (missing == 0) return give_up("sent more answers than it was asked for");
      --missing;
      if (set_up_answers == 0) {
        reply.answers.push_back(std::move(answer));
      } else {
        is_set_up = --set_up_answers == 0;
      }
      answer = {};
      return;
    case PGRES_FATAL_ERROR:
      if (reply.error) return;
      state = field(result, PG_DIAG_SQLSTATE);
      reply.error = state.empty()
                        ? Error{Errc::unreachable, server + ": the connection was lost"}
                        : error_of(state, field(result, PG_DIAG_MESSAGE_PRIMARY), server, *place);
      reply.trouble = trouble_of(state);
      return;
    default:
      give_up("its answer makes no sense; is it a PostgreSQL server?");
  }
}

void Connection::State::take_rows(const PGresult* result) {
  const int fields = library->PQnfields(result);
  for (int number = 0; number < library->PQntuples(result); ++number) {
    sql::Row& row = answer.rows.emplace_back();
    bytes += sizeof(sql::Row);
    for (int i = 0; i < fields; ++i) {
      bytes += kBytesOfField;
      if (library->PQgetisnull(result, number, i) != 0) {
        row.emplace_back();
        continue;
      }
      const auto length = static_cast<std::size_t>(library->PQgetlength(result, number, i));
      bytes += length;
      row.emplace_back(std::string(library->PQgetvalue(result, number, i), length));
    }
  }
  if (bytes > kMostBytes) give_up("its answer is too large");
}

// The rows come one by one: a server can send more than there is memory.
void Connection::take_answers() {
  const Library& library = *state_->library;
  PGconn* const line = state_->line.get();
  bool is_next = false;  // an answer is over
  while (state_->is_under_way && !state_->is_given_up && library.PQisBusy(line) == 0) {
    if (PGresult* const result = library.PQgetResult(line)) {
      is_next = false;
      state_->on_result(result);
      library.PQclear(result);
      continue;
    }
    if (library.PQstatus(line) == CONNECTION_BAD) return;
    if (is_next) return state_->give_up("its answers came out of order");
    is_next = true;
    library.PQsetSingleRowMode(line);
  }
}

Reply Connection::receive(Deadline deadline, Cancel cancel) {
  if (broken()) return failed(Errc::unreachable, state_->why_broken);
  const Library& library = *state_->library;
  PGconn* const line = state_->line.get();
  const int socket = library.PQsocket(line);
  for (;;) {
    const bool is_sent = library.PQflush(line) == 0;
    take_answers();
    const bool is_over =
        !state_->is_under_way || state_->is_given_up || library.PQstatus(line) == CONNECTION_BAD;
    if (is_over) break;
    const auto events = static_cast<short>(is_sent ? POLLIN : POLLIN | POLLOUT);
    std::array<pollfd, 2> fds{{{socket, events, 0}, {cancel.fd(), POLLIN, 0}}};
    util::poll(fds, deadline);
    // Also of a server that goes on to send.
    if (fds[1].revents != 0 || fds[0].revents == 0 || Clock::now() >= deadline) {
      util::log_exchange(state_->server, state_->asked, "no reply yet", state_->sent);
      if (fds[1].revents != 0) {
        return failed(Errc::cancelled, state_->server + ": stopped waiting for an answer");
      }
      return failed(Errc::unreachable,
                    state_->server + ": no answer" + sql::within(state_->sent, deadline));
    }
    library.PQconsumeInput(line);  // an error is seen by PQgetResult()
  }
  Reply reply = std::move(state_->reply);
  if (state_->is_under_way && !reply.error) {
    reply = failed(Errc::unreachable, state_->server + ": the connection was lost");
  } else if (state_->is_unacknowledged) {
    reply = failed(Errc::unreachable, state_->server +
                                          ": its synchronous standby has not "
                                          "acknowledged the commit");
  }
  if (util::exchanges_shown()) {
    util::log_exchange(
        state_->server, state_->asked,
        reply.ok() ? "answers: " + std::to_string(reply.answers.size()) : reply.error->message,
        state_->sent);
  }
  if (!reply.ok() && (state_->is_under_way || state_->is_given_up || state_->is_unacknowledged ||
                      ends_connection(state_->state))) {
    close(reply.error->message);
  }
  return reply;
}

bool Connection::under_way() const { return !broken() && state_->is_under_way; }
int Connection::fd() const { return broken() ? -1 : state_->library->PQsocket(state_->line.get()); }
const std::string& Connection::server() const { return state_->server; }
bool Connection::broken() const { return !state_->line; }

void Connection::close(const std::string& why) {
  if (broken()) return;
  state_->why_broken = why;
  state_->line.reset();
  state_->is_under_way = false;
}

}  // namespace dlock::postgres
