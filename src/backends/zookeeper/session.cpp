// The library is told what its socket is ready for (zookeeper_process) and tells what it waits for
// (zookeeper_interest); the waiting in between is ours, so that Cancel ends it.
#include "backends/zookeeper/session.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backends/zookeeper/resolve.hpp"
#include "core/patience.hpp"
#include "util/duration.hpp"
#include "util/exchange.hpp"
#include "util/jitter.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::zookeeper {
namespace {

using util::Level;

// Between two rounds of connects: by chance from half of this to three halves of it.
constexpr Millis kRedial{300};
constexpr Millis kLookUp{1'000};  // a name server that does not answer now may do so the next time
constexpr Millis kHangUpAtLeast{100};
constexpr Millis kResetFollows{50};
constexpr Millis kMostTimeout{10LL * 24 * 3'600'000};  // of a session; a server grants less
constexpr auto kNoLog = static_cast<ZooLogLevel>(0);

void log_line(const char* message) {
  util::log(Level::trace, std::string("zookeeper client: ") + message);
}

Millis redial_pause() { return util::jitter(kRedial / 2, kRedial * 3 / 2); }

// A connection that only waits is silent: with these options the kernel notices a peer that is
// gone.
void set_options(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// Whether the other side ends a connection by RST, perhaps behind a FIN.  A ZooKeeper server does
// so at once with a connection more than maxClientCnxns.  One without a leader, or one that expects
// TLS, ends it by FIN alone.  While a server starts, it may do either for a moment.
bool is_reset(int fd) {
  char first = 0;
  const ssize_t got = ::recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got != 0) return got < 0 && errno == ECONNRESET;
  pollfd item{fd, 0, 0};
  return util::poll({&item, 1}, after(Clock::now(), kResetFollows)) > 0;
}

}  // namespace

Session::Session(std::shared_ptr<const Place> place, Millis timeout)
    : place_(std::move(place)), asked_timeout_(timeout), attempts_(place_->patience) {
  const bool traced = util::log_shows(Level::trace);
  zoo_set_debug_level(traced ? ZOO_LOG_LEVEL_INFO : kNoLog);
}

Session::~Session() {
  if (!handle_) return;
  zoo_set_watcher(handle(), nullptr);
  hang_up();  // or the library would end it on the servers
}

void Session::on_event(zhandle_t* handle, int type, int, const char* path, void* context) {
  if (type == ZOO_SESSION_EVENT) return;
  static_cast<Session*>(context)->news_ = true;
  if (!util::exchanges_shown()) return;
  util::log_exchange(current_server(handle), "watch",
                     std::string("change of ") + (path == nullptr ? "" : path), std::nullopt);
}

bool Session::connected() const { return handle_ && zoo_state(handle()) == ZOO_CONNECTED_STATE; }
bool Session::expired() const {
  return ended_ || (handle_ && zoo_state(handle()) == ZOO_EXPIRED_SESSION_STATE);
}
bool Session::stopped() const { return !handle_ || is_unrecoverable(handle()) != ZOK; }
std::int64_t Session::id() const { return zoo_client_id(handle())->client_id; }

bool Session::take_news() { return std::exchange(news_, false); }

Result<void> Session::prepare(Deadline deadline, Cancel cancel) {
  if (handle_) return {};
  const auto servers = resolve(place_->hosts, deadline, cancel);
  if (!servers) return servers.error();
  attempts_.set_servers(servers.value().count);
  addresses_ = servers.value().list;
  handle_.reset(
      zookeeper_init2(addresses_.c_str(), on_event, static_cast<int>(asked_timeout_.count()),
                      former_ ? &*former_ : nullptr, this, ZOO_NO_LOG_CLIENTENV, log_line));
  if (!handle_) return Error{Errc::unreachable, place_->shown + ": " + std::strerror(errno)};
  zoo_set_servers_resolution_delay(handle(), -1);
  if (!place_->auth.empty()) {
    zoo_add_auth(handle(), "digest", place_->auth.data(), static_cast<int>(place_->auth.size()),
                 nullptr, nullptr);
  }
  return {};
}

Result<void> Session::open(Deadline deadline, Cancel cancel) {
  if (auto ok = prepare(deadline, cancel); !ok) return ok;
  attempts_.begin_round();
  while (!connected()) {
    if (stopped() || attempts_.all_failed()) return silent();
    if (Clock::now() >= deadline) return give_up();
    if (auto ok = turn(deadline, cancel); !ok) return ok;
  }
  return {};
}

Result<void> Session::open_in_farewell(Deadline deadline, Cancel cancel) {
  return try_in_farewell([&](Deadline until) { return open(until, cancel); }, deadline, cancel);
}

// The library would look up names without our deadline.
void Session::look_up_again(Deadline until, Cancel cancel) {
  if (!attempts_.wants_lookup()) return;
  const auto servers =
      resolve(place_->hosts, std::min(until, after(Clock::now(), kLookUp)), cancel);
  if (!servers || servers.value().list == addresses_) return;
  if (zoo_set_servers(handle(), servers.value().list.c_str()) != ZOK) return;
  addresses_ = servers.value().list;
  attempts_.set_servers(servers.value().count);
}

// A server may be stopped while others are well, so half of the time is for the one that we are
// connected to, and the other half for the next.
Result<void> Session::wait(const std::vector<Call>& calls, Deadline deadline, Cancel cancel) {
  const auto all_done = [&] {
    return std::all_of(calls.begin(), calls.end(), [](const Call& call) { return call->done; });
  };
  const Deadline now = Clock::now();
  const Deadline hang_up_at = deadline - now < kHangUpAtLeast ? kNever : now + (deadline - now) / 2;
  while (!all_done()) {
    if (Clock::now() >= deadline) return give_up();
    if (connected() && Clock::now() >= hang_up_at) {
      hang_up();
      continue;
    }
    if (auto ok = turn(connected() ? std::min(deadline, hang_up_at) : deadline, cancel); !ok) {
      return ok;
    }
  }
  if (connected()) attempts_.answered();
  // The connection is well, so somebody else has ended the session.
  ended_ = ended_ || std::any_of(calls.begin(), calls.end(),
                                 [](const Call& call) { return call->code == ZSESSIONEXPIRED; });
  return {};
}

Result<void> Session::wait_for_news(Deadline deadline, Cancel cancel) {
  const bool was_connected = connected();
  while (!news_ && !stopped() && connected() == was_connected && Clock::now() < deadline) {
    if (auto ok = turn(deadline, cancel); !ok) return ok;
  }
  return {};
}

void Session::look() {
  for (int packets = 0; packets < 1'000 && connected(); ++packets) {
    pollfd item{fd_, POLLIN, 0};
    if (util::poll({&item, 1}, Deadline{}) == 0) return;
    if (auto ok = turn(Deadline{}, Cancel()); !ok) return;
  }
}

struct Session::Interest {
  int events = 0;  // of fd_
  Deadline until;  // when to ask the library again
};

// One step of the library's: it says what it waits for, that is waited for, and it reads and
// writes. Ends early only if cancelled.
Result<void> Session::turn(Deadline until, Cancel cancel) {
  if (stopped()) return {};
  if (!has_socket()) look_up_again(until, cancel);
  const Interest wanted = interest();
  const Deadline hang_up_at = fd_ >= 0 && !connected() ? attempts_.give_up_at() : kNever;
  std::array<pollfd, 2> fds{{{cancel.fd(), POLLIN, 0}, {fd_, 0, 0}}};
  if ((wanted.events & ZOOKEEPER_READ) != 0) fds[1].events |= POLLIN;
  if ((wanted.events & ZOOKEEPER_WRITE) != 0) fds[1].events |= POLLOUT;
  util::poll(fds, std::min({until, wanted.until, hang_up_at}));
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting for " + place_->shown};
  int events = 0;
  if ((fds[1].revents & POLLIN) != 0) events |= ZOOKEEPER_READ;
  if ((fds[1].revents & POLLOUT) != 0) events |= ZOOKEEPER_WRITE;
  if ((fds[1].revents & (POLLERR | POLLHUP)) != 0) events |= wanted.events;
  if (events != 0) {
    process(events);
  } else if (Clock::now() >= hang_up_at) {
    attempts_.was_silent();
    hang_up();
  }
  return {};
}

// If there is no connection, the library begins one.
Session::Interest Session::interest() {
  const Deadline now = Clock::now();
  const bool connects = !has_socket();
  Interest out;
  timeval pause{};
  const int code = observe([&] { return zookeeper_interest(handle(), &fd_, &out.events, &pause); });
  if (code != ZOK) fd_ = -1;
  if (connects && (fd_ >= 0 || code != ZOK)) {
    attempts_.begin(now);
    if (fd_ >= 0) set_options(fd_);
  }
  Millis rest = code != ZOK ? Millis{0} : Millis{pause.tv_sec * 1'000 + pause.tv_usec / 1'000 + 1};
  if (fd_ < 0) rest = attempts_.none_yet() ? Millis{0} : std::min(rest, redial_pause());
  out.until = after(now, rest);
  return out;
}

void Session::process(int events) {
  const bool reset = zoo_state(handle()) == ZOO_ASSOCIATING_STATE && is_reset(fd_);
  observe([&] { return zookeeper_process(handle(), events); }, reset);
}

// Calls the library and notes what has become of the connection.
template <class Ask>
int Session::observe(Ask ask, bool reset) {
  const Deadline now = Clock::now();
  const int before = zoo_state(handle());
  errno = 0;
  const int code = ask();
  const int cause = reset ? ECONNRESET : errno;
  const int state = zoo_state(handle());
  if (state != before && state == ZOO_ASSOCIATING_STATE) handshake_ = now;
  if (state != before && (state == ZOO_CONNECTED_STATE || state == ZOO_READONLY_STATE)) accepted();
  if (code != ZOK && code != ZNOTHING) failed(code, cause, before == ZOO_CONNECTED_STATE);
  return code;
}

// Another service has sent what looks like a session if that can only read, for which we did not
// ask, or lasts longer than any.  The next connection is for a new session.
void Session::accepted() {
  const Millis timeout{zoo_recv_timeout(handle())};
  if (!connected() || timeout <= Millis{0} || timeout > kMostTimeout) {
    zoo_set_watcher(handle(), nullptr);
    hang_up();
    handle_.reset();
    trouble_ = "what answers there does not speak the protocol of ZooKeeper";
    return;
  }
  timeout_ = timeout;
  attempts_.succeeded();
  trouble_.clear();
  clock_.opened(handshake_, Clock::now(), timeout_);
}

void Session::failed(int code, int cause, bool was_connected) {
  const bool reset = cause == ECONNRESET || cause == EPIPE;
  const bool closed = cause == EHOSTDOWN;  // the library's name for the end of a connection
  if (!was_connected) attempts_.failed(reset);
  if (code == ZOPERATIONTIMEOUT || cause == ETIMEDOUT) {
    trouble_ = "no answer; is this a ZooKeeper server?";
  } else if (!was_connected && (reset || closed)) {
    trouble_ =
        "the server closes new connections: it has no majority, or its maxClientCnxns is reached, "
        "or the port is for TLS, which dlock does not have for ZooKeeper";
  } else if (closed) {
    trouble_ = "the server closes the connection";
  } else if (cause != 0 && cause != EAGAIN) {
    trouble_ = std::strerror(cause);
    std::transform(trouble_.begin(), trouble_.begin() + 1, trouble_.begin(), ::tolower);
  }
}

// A server that has not answered until now may never do so, and the next call needs a connection.
Error Session::give_up() {
  hang_up();
  return silent();
}

// Whether fd_ is still the library's.
bool Session::has_socket() const {
  if (!handle_) return false;
  const int state = zoo_state(handle());
  return state == ZOO_CONNECTED_STATE || state == ZOO_ASSOCIATING_STATE ||
         state == ZOO_CONNECTING_STATE || state == ZOO_READONLY_STATE;
}

// The library reads the end of the connection, and goes on to the next server.
void Session::hang_up() {
  if (!has_socket()) return;
  if (!connected()) attempts_.failed(false);
  ::shutdown(fd_, SHUT_RDWR);
  for (int packets = 0; packets < 10'000 && !stopped(); ++packets) {
    if (zookeeper_process(handle(), ZOOKEEPER_READ | ZOOKEEPER_WRITE) != ZOK) break;
  }
  trouble_ = "no answer";
}

void Session::close() {
  if (!handle_) return;
  zoo_set_watcher(handle(), nullptr);
  // The library would wait for the answer; this way it sees an end at once.
  if (connected()) ::shutdown(fd_, SHUT_RD);
  handle_.reset();
}

// The server closes the connection when it has ended the session.  To connect again before that is
// wrong: when the server learns that the session has moved to a new connection, it closes the old
// one and drops what it has not read there, the request to end the session included.
bool Session::end(Deadline deadline) {
  while (handle_ && !expired() && id() != 0) {
    const Fd line(connected() ? ::fcntl(fd_, F_DUPFD_CLOEXEC, 0) : -1);
    former_ = *zoo_client_id(handle());
    zoo_set_watcher(handle(), nullptr);
    handle_.reset();
    std::array<char, 4096> answer;
    while (line) {
      if (!util::wait_readable(line.get(), deadline)) return false;
      const ssize_t got = ::recv(line.get(), answer.data(), answer.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) break;
    }
    if (!open_in_farewell(deadline, Cancel())) return expired();
  }
  return true;
}

void Session::add_to(const Fd& epoll) const {
  if (!has_socket()) return;
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd_, &event);
}

Error Session::silent() const {
  if (handle_ && zoo_state(handle()) == ZOO_AUTH_FAILED_STATE) {
    return {Errc::denied, place_->shown + ": the credentials were refused"};
  }
  if (expired()) return {Errc::lost, place_->shown + ": the session has expired"};
  const std::string why = trouble_.empty() ? "no answer in time" : trouble_;
  return {Errc::unreachable, place_->shown + ": " + why, attempts_.servers_are_full()};
}

Error Session::refused(const Call& call, const std::string& doing) const {
  const std::string at = place_->shown + ": cannot " + doing + ": ";
  switch (call->code) {
    case ZNOAUTH:
      return {Errc::denied,
              at + "no permission" +
                  (place_->auth.empty() ? "; perhaps it needs a user, or ?auth_file= in the URL"
                                        : " for the user of this password")};
    case ZAUTHFAILED:
      return {Errc::denied, at + "the credentials were refused"};
    case ZINVALIDACL:
      return {Errc::denied, at + "the server does not accept the user as an owner of nodes"};
    case ZNONODE:
      return {Errc::invalid, at + "no such node"};
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZRUNTIMEINCONSISTENCY:
    case ZMARSHALLINGERROR:
      return silent();
    default:
      return {Errc::unreachable, at + zerror(call->code)};
  }
}

}  // namespace dlock::zookeeper
