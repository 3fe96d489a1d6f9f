// Why a thread. mysql_real_connect() resolves names and waits as long as it likes.  For answers one
//              could wait with poll(2), but both client libraries read ahead: the second answer may
//              be with them already while the socket stays silent, and neither tells.
// Leaving.     Who does not want to wait any longer shuts the socket down, which ends the call that
//              is blocked on it.  While connecting, the library may close the socket at any time,
//              so a copy of it is shut down, which is made when the server sends something.  Before
//              that, and with MySQL's library, the library's own timeouts end the call.
// Signals.     The thread blocks all of them: none is handled here, and SIGPIPE, which OpenSSL's
//              and GnuTLS' write(2) may raise, ends nobody.
// Sizes.       Rows are fetched one by one, and their memory is counted here.  answer_limit.cpp
//              counts all bytes, the descriptions of columns included.
#include "backends/mysql/worker.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "backends/mysql/answer_limit.hpp"
#include "backends/mysql/client_options.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/library.hpp"
#include "backends/mysql/login_guard.hpp"
#include "backends/sql/servers.hpp"
#include "util/fd.hpp"
#include "util/host.hpp"
#include "util/log.hpp"

#ifdef LIBMARIADB
#include <ma_pvio.h>
#endif
#include <errmsg.h>

namespace dlock::mysql {
namespace {

constexpr std::size_t kBytesOfField = 48;  // what a field costs beside its text, about

}  // namespace

struct Worker::Shared {
  // Set before the thread begins.
  const Library* library;
  std::shared_ptr<const Place> place;
  HostPort host;
  std::string server;
  Fd done{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  // What both threads touch.
  std::mutex mutex;
  std::condition_variable wake;
  bool leaves = false;
  bool busy = true;
  std::optional<Result<Greeting>> greeting;
  std::optional<std::string> sql;
  Outcome reply;
  int fd = -1;  // to shut down; -1: none
  Fd copy;      // of the library's socket while it connects

  // The thread's own.
  MYSQL* mysql = nullptr;

  void run();

 private:
  Result<Greeting> connect();
  void copy_socket(int socket);
  Error without_tls() const {
    return {Errc::unreachable, server + ": it does not speak TLS there"};
  }
  Error why_not_connected(Deadline start);
  Greeting greet();
  Outcome carry_out(const std::string& statements);
  bool take_rows(sql::Answer& answer, std::size_t& bytes);
  void set_error(Outcome& out, unsigned code, std::string_view text) const;
  void tell() const { eventfd_write(done.get(), 1); }
};

Worker::Greeting Worker::Shared::greet() {
  Greeting out;
  out.id = library->mysql_thread_id(mysql);
  out.fd = static_cast<int>(mysql->net.fd);
#ifdef LIBMARIADB
  // A statement may take as long as it likes.
  mysql->net.pvio->methods->set_timeout(mysql->net.pvio, PVIO_READ_TIMEOUT, 0);
#endif
  ::fcntl(out.fd, F_SETFD, FD_CLOEXEC);
  if (!place->socket.empty()) return out;
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(out.fd, level, option, &value, sizeof value);
  };
  // NAT boxes and firewalls forget a silent connection, some after five minutes; and a server that
  // vanished is not missed by who only waits.  A probe a minute, and 60 + 3 * 20 seconds.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  return out;
}

Error Worker::Shared::why_not_connected(Deadline start) {
  unsigned code = library->mysql_errno(mysql);
  std::string text = library->mysql_error(mysql);
  const Refused refused = take_refused();  // the library knows only that something went wrong
  if (refused == Refused::no_tls) return without_tls();
  if (refused == Refused::plain_password) {
    code = CR_AUTH_PLUGIN_ERR;
    text = "Authentication requires secure connection";  // as MySQL's library has it
  }
  if (auto refusal = refusal_before_tls(text)) {
    code = refusal->code;
    text = std::move(refusal->text);
  }
  const auto error = system_error(code, text);
  // MariaDB's library does not look why a connect(2) has failed that took a moment.
  const bool is_late = Clock::now() >= after(start, place->connect_timeout);
  if (error == EINPROGRESS && !is_late) {
    return {Errc::unreachable, server + ": connection refused, or no route to it"};
  }
  return connect_error_of(code, text, error, server, *place);
}

// The timeout of MariaDB's library is for each read: a server that sends a byte every few seconds
// would never let this thread go.
void Worker::Shared::copy_socket(int socket) {
  const std::lock_guard lock(mutex);
  copy.reset(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
  fd = copy.get();
  if (leaves && fd >= 0) ::shutdown(fd, SHUT_RDWR);
}

Result<Worker::Greeting> Worker::Shared::connect() {
  mysql = library->mysql_init(nullptr);
  if (mysql == nullptr) return Error{Errc::unreachable, server + ": no memory"};
  if (auto ok = set_client_options(*library, mysql, *place, kMostBytes); !ok) {
    return Error{ok.error().code, server + ": " + ok.error().message};
  }
  begin_answer([this](int socket) { copy_socket(socket); });
  const Deadline start = Clock::now();
  const char* const socket = place->socket.empty() ? nullptr : place->socket.c_str();
  const char* const name = socket == nullptr ? host.host.c_str() : nullptr;
  // FOUND_ROWS: a row that is set to what it was counts, too.  Two renewals can be that alike.
  if (library->mysql_real_connect(mysql, name, place->user.c_str(), place->password.c_str(),
                                  place->database.c_str(), host.port, socket,
                                  CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS) == nullptr) {
    return why_not_connected(start);
  }
  if (library->mysql_get_ssl_cipher(mysql) == nullptr) {
    // The guard has refused such a server before, except with a library in which it has no place.
    if (needs_tls(place->tls)) return without_tls();
    if (place->tls == Tls::preferred) {
      sql::warn_without_tls(server, static_cast<int>(mysql->net.fd),
                            "?tls=verify in the URL asks for TLS, ?tls=off accepts that");
    }
  }
  return greet();
}

// Once TLS works, "SSL connection error" (2026) means that the connection was lost.
void Worker::Shared::set_error(Outcome& out, unsigned code, std::string_view text) const {
  if (code == CR_SSL_CONNECTION_ERROR) code = CR_SERVER_LOST;
  out.error = error_of(code, text, server, *place);
  out.trouble = trouble_of(code, *place);
  out.ends_connection = ends_connection(code);
}

// The rows of one answer, if it has any; false if there is an error or they are too many.
bool Worker::Shared::take_rows(sql::Answer& answer, std::size_t& bytes) {
  MYSQL_RES* const result = library->mysql_use_result(mysql);
  if (result == nullptr) return library->mysql_field_count(mysql) == 0;
  const unsigned fields = library->mysql_num_fields(result);
  while (const MYSQL_ROW row = library->mysql_fetch_row(result)) {
    const unsigned long* const lengths = library->mysql_fetch_lengths(result);
    sql::Row& out = answer.rows.emplace_back();
    out.reserve(fields);
    bytes += sizeof(sql::Row);
    for (unsigned i = 0; i < fields; ++i) {
      bytes += kBytesOfField + lengths[i];
      if (row[i] == nullptr) {
        out.emplace_back();
      } else {
        out.emplace_back(std::in_place, row[i], lengths[i]);
      }
    }
    if (bytes > kMostBytes) break;
  }
  const bool ok = library->mysql_errno(mysql) == 0;
  if (bytes > kMostBytes) cut_off(mysql);
  library->mysql_free_result(result);
  return ok;
}

Worker::Outcome Worker::Shared::carry_out(const std::string& statements) {
  Outcome out;
  std::size_t bytes = 0;
  begin_answer();
  int status = library->mysql_real_query(mysql, statements.data(),
                                         static_cast<unsigned long>(statements.size()));
  while (status == 0) {
    sql::Answer answer;
    bytes += sizeof answer;
    const bool ok = take_rows(answer, bytes);
    if (!ok || bytes > kMostBytes) break;
    out.answers.push_back(std::move(answer));
    status = library->mysql_next_result(mysql);
    if (status < 0) return out;  // that was the last
  }
  if (bytes > kMostBytes || answer_is_too_long()) {
    set_error(out, CR_NET_PACKET_TOO_LARGE, "more than 64 MiB");
  } else {
    set_error(out, library->mysql_errno(mysql), library->mysql_error(mysql));
  }
  return out;
}

void Worker::Shared::run() {
  pthread_setname_np(pthread_self(), "dlock-mysql");
  library->mysql_thread_init();
  auto connected = connect();
  std::unique_lock lock(mutex);
  const bool ok = connected.has_value();
  fd = ok ? connected->fd : -1;
  copy.reset();
  greeting = std::move(connected);
  busy = false;
  tell();
  while (ok && !leaves) {
    wake.wait(lock, [this] { return leaves || sql; });
    if (!sql || leaves) break;
    const std::string statements = std::move(*sql);
    sql.reset();
    lock.unlock();
    Outcome out = carry_out(statements);
    lock.lock();
    reply = std::move(out);
    busy = false;
    if (!leaves) tell();
  }
  fd = -1;  // nobody shuts down what may be another's by then
  lock.unlock();
  if (mysql != nullptr) library->mysql_close(mysql);
  library->mysql_thread_end();
  tell();
}

Worker::Worker(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}
Worker::~Worker() = default;

Result<std::shared_ptr<Worker>> Worker::start(const Library& library,
                                              std::shared_ptr<const Place> place, HostPort host) {
  auto shared = std::make_unique<Shared>();
  shared->library = &library;
  shared->server = place->shown_host(host);
  shared->place = std::move(place);
  shared->host = std::move(host);
  const std::string server = shared->server;
  const auto failed = [&](int error) {
    return Error{Errc::unreachable, server + ": cannot connect: " + std::strerror(error)};
  };
  if (!shared->done) return failed(errno);
  auto worker = std::make_shared<Worker>(std::move(shared));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  try {
    std::thread([worker] { worker->shared_->run(); }).detach();
  } catch (const std::system_error& caught) {
    error = caught.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return failed(error);
  return worker;
}

int Worker::done_fd() const { return shared_->done.get(); }

Result<Worker::Greeting> Worker::greeting() {
  const std::lock_guard lock(shared_->mutex);
  eventfd_t count = 0;
  eventfd_read(shared_->done.get(), &count);
  return *shared_->greeting;
}

void Worker::ask(std::string sql) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->sql = std::move(sql);
    shared_->busy = true;
  }
  shared_->wake.notify_one();
}

Worker::Outcome Worker::reply() {
  const std::lock_guard lock(shared_->mutex);
  eventfd_t count = 0;
  eventfd_read(shared_->done.get(), &count);
  return std::move(shared_->reply);
}

bool Worker::leave() {
  const std::lock_guard lock(shared_->mutex);
  shared_->leaves = true;
  if (shared_->busy && shared_->fd >= 0) ::shutdown(shared_->fd, SHUT_RDWR);
  shared_->wake.notify_one();
  return !shared_->busy;
}

}  // namespace dlock::mysql
