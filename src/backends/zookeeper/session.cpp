// The library is told what its socket is ready for (zookeeper_process) and tells what it waits for
// (zookeeper_interest); the waiting in between is ours, so that Cancel ends it.
#include "backends/zookeeper/session.hpp"

#include <fcntl.h>
#include <linux/tcp.h>  // netinet/tcp.h has no tcpi_bytes_received
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backends/zookeeper/resolve.hpp"
#include "backends/zookeeper/unpack.hpp"
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
// For a connection and the answer to its first words.
constexpr Millis kDial{400};
constexpr Millis kOnlyDial{3'000};  // at least, where there is one server
constexpr unsigned kMostDoublings = 8;
constexpr Millis kLookUp{1'000};  // a name server that does not answer now may do so the next time
constexpr Millis kHangUpAtLeast{100};
constexpr Millis kResetFollows{50};
constexpr unsigned kTurnedAway = 2;  // a server that starts may reset a connection, too
constexpr Millis kMostTimeout{10LL * 24 * 3'600'000};
// Of one answer.  A list of a million locks takes half as much.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} * 1024 * 1024;
constexpr auto kNoLog = static_cast<ZooLogLevel>(0);

void log_line(const char* message) {
  util::log(Level::trace, std::string("zookeeper client: ") + message);
}

Millis redial_pause() { return util::jitter(kRedial / 2, kRedial * 3 / 2); }

// A connection that only waits is silent for as long as the library's pings are apart; see the
// redis backend's dial for the numbers.
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

// Since the connection was made, read or not.  0 if the kernel does not count them.
std::uint64_t bytes_received(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

}  // namespace

Session::Session(std::shared_ptr<const Place> place, Millis timeout)
    : place_(std::move(place)), asked_timeout_(timeout) {
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

Session& Session::of(zhandle_t* handle) {
  return *static_cast<Session*>(const_cast<void*>(zoo_get_context(handle)));
}

bool Session::connected() const {
  return handle_ && !no_server_ && zoo_state(handle()) == ZOO_CONNECTED_STATE;
}
bool Session::expired() const {
  return ended_ || (handle_ && zoo_state(handle()) == ZOO_EXPIRED_SESSION_STATE);
}
bool Session::stopped() const { return no_server_ || is_unrecoverable(handle()) != ZOK; }
std::int64_t Session::id() const { return zoo_client_id(handle())->client_id; }

bool Session::take_news() { return std::exchange(news_, false); }

Result<void> Session::prepare(Deadline deadline, Cancel cancel) {
  if (handle_ && !no_server_) return {};
  const auto servers = resolve(place_->hosts, deadline, cancel);
  if (!servers) return servers.error();
  if (handle_) forget_connection();
  servers_ = servers.value().count;
  addresses_ = servers.value().list;
  handle_.reset(
      zookeeper_init2(addresses_.c_str(), on_event, static_cast<int>(asked_timeout_.count()),
                      former_ ? &*former_ : nullptr, this, ZOO_NO_LOG_CLIENTENV, log_line));
  if (!handle_) return Error{Errc::unreachable, place_->shown + ": " + std::strerror(errno)};
  no_server_ = false;
  zoo_set_servers_resolution_delay(handle(), -1);
  if (!place_->auth.empty()) {
    zoo_add_auth(handle(), "digest", place_->auth.data(), static_cast<int>(place_->auth.size()),
                 nullptr, nullptr);
  }
  return {};
}

Result<void> Session::open(Deadline deadline, Cancel cancel) {
  if (auto ok = prepare(deadline, cancel); !ok) return ok;
  failures_ = 0;
  while (!connected()) {
    if (stopped() || failures_ >= servers_) return silent();
    if (Clock::now() >= deadline) return give_up();
    if (auto ok = turn(deadline, cancel); !ok) return ok;
  }
  return {};
}

Result<void> Session::open_until(Deadline deadline, Cancel cancel) {
  return try_in_farewell([&](Deadline until) { return open(until, cancel); }, deadline, cancel);
}

// Once in each round of connects in which no server has answered: they may have moved, as
// containers do.  The library would look up names without our deadline.
void Session::look_up_again(Deadline until, Cancel cancel) {
  if (dials_ == 0 || dials_ % servers_ != 0 || looked_up_ == dials_) return;
  looked_up_ = dials_;
  const auto servers =
      resolve(place_->hosts, std::min(until, after(Clock::now(), kLookUp)), cancel);
  if (!servers || servers.value().list == addresses_) return;
  if (zoo_set_servers(handle(), servers.value().list.c_str()) != ZOK) return;
  addresses_ = servers.value().list;
  servers_ = servers.value().count;
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
    if (no_server_) return silent();
    if (Clock::now() >= deadline) return give_up();
    if (connected() && Clock::now() >= hang_up_at) {
      hang_up();
      continue;
    }
    if (auto ok = turn(connected() ? std::min(deadline, hang_up_at) : deadline, cancel); !ok) {
      return ok;
    }
  }
  if (no_server_) return silent();
  if (connected()) dials_ = silences_ = looked_up_ = 0;
  // Told on a connection that was not cut: somebody else has ended the session.
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

// The library reads one answer at most, and that is of the oldest request.  At other times it
// unpacks only what it has packed.
int Session::process(int events) {
  expect_answer(pending_.empty() ? std::nullopt : std::optional(pending_.front()));
  const int code = zookeeper_process(handle(), events);
  expect_answer(0);
  return code;
}

// One round of the library's.  Ends early only if cancelled.
Result<void> Session::turn(Deadline until, Cancel cancel) {
  if (stopped()) return {};
  const Deadline asked = Clock::now();
  const int before = zoo_state(handle());
  const bool dialling = !has_socket();
  if (dialling) look_up_again(until, cancel);
  int fd = -1;
  int interest = 0;
  timeval pause{};
  errno = 0;
  const int code = zookeeper_interest(handle(), &fd, &interest, &pause);
  note(before, asked, code, errno);
  if (code != ZOK) fd = -1;
  fd_ = fd;
  if (dialling && (fd >= 0 || code != ZOK)) {
    dialled_ = asked;
    whole_bytes_ = 0;
    ++dials_;
    if (fd >= 0) set_options(fd);
  }
  Millis rest = code != ZOK ? Millis{0} : Millis{pause.tv_sec * 1'000 + pause.tv_usec / 1'000 + 1};
  if (fd < 0) rest = dials_ == 0 ? Millis{0} : std::min(rest, redial_pause());
  const Deadline hang_up_at =
      fd >= 0 && !connected() ? after(dialled_, patience_with_dial()) : kNever;
  std::array<pollfd, 2> fds{{{cancel.fd(), POLLIN, 0}, {fd, 0, 0}}};
  if ((interest & ZOOKEEPER_READ) != 0) fds[1].events |= POLLIN;
  if ((interest & ZOOKEEPER_WRITE) != 0) fds[1].events |= POLLOUT;
  util::poll(fds, std::min({until, after(asked, rest), hang_up_at}));
  if (fds[0].revents != 0) return Error{Errc::cancelled, "stopped waiting for " + place_->shown};
  if (fd < 0) return {};
  if (fds[1].revents == 0 && Clock::now() >= hang_up_at) {
    ++silences_;
    cut(fd);
    return {};
  }
  int events = 0;
  if ((fds[1].revents & POLLIN) != 0) events |= ZOOKEEPER_READ;
  if ((fds[1].revents & POLLOUT) != 0) events |= ZOOKEEPER_WRITE;
  if ((fds[1].revents & (POLLERR | POLLHUP)) != 0) events |= interest;
  if (events == 0) return {};
  const int state = zoo_state(handle());
  const bool reset = state == ZOO_ASSOCIATING_STATE && is_reset(fd);
  const Deadline now = Clock::now();
  errno = 0;
  const int done = process(events);
  note(state, now, done, reset ? ECONNRESET : errno);
  check_answers();
  return {};
}

// A server that does not answer must not use up the time that the others need.  In the next round
// each has twice as long: perhaps they are only far away.
// A server that starts may drop the first words of a connection, so a single one is called again,
// too, and sooner if it refused or closed another one: then it does start.
Millis Session::patience_with_dial() const {
  const auto doubled = [](Millis time, unsigned times) {
    return time * (1U << std::min(times, kMostDoublings));
  };
  Millis most = doubled(kDial, dials_ / servers_);
  if (servers_ == 1) {
    const bool starts = dials_ > silences_ + 1;
    most = doubled(starts ? kOnlyDial : std::max(place_->patience / 2, kOnlyDial), silences_);
  }
  return std::min(most, place_->patience);
}

// The library accepts an answer of any length.
void Session::check_answers() {
  const Unpacked unpacked = take_unpacked();
  const std::uint64_t bytes = has_socket() ? bytes_received(fd_) : 0;
  if (unpacked.answers > 0) whole_bytes_ = bytes;
  const bool is_endless = bytes > whole_bytes_ + kMostBytes;
  if (!unpacked.damaged && !is_endless) return;
  no_server_ = true;
  trouble_ = is_endless ? "an answer has more than 64 MiB; is it a ZooKeeper server?"
                        : "the answer is damaged; is it a ZooKeeper server?";
}

// Of what a call to the library has changed.
void Session::note(int state_before, Deadline asked, int code, int cause) {
  const int state = zoo_state(handle());
  if (state == ZOO_ASSOCIATING_STATE && state_before != state) handshake_ = asked;
  // Read-only is what nobody offers who was not asked for it.
  const bool read_only = state == ZOO_READONLY_STATE;
  if ((state == ZOO_CONNECTED_STATE || read_only) && state_before != state) {
    timeout_ = Millis{zoo_recv_timeout(handle())};
    if (read_only || timeout_ <= Millis{0} || timeout_ > kMostTimeout) {
      no_server_ = true;
      trouble_ = "what answers there does not speak the protocol of ZooKeeper";
      return;
    }
    failures_ = 0;
    resets_ = 0;
    trouble_.clear();
    clock_.opened(handshake_, Clock::now(), timeout_);
  }
  if (code == ZOK || code == ZNOTHING) return;
  const bool is_new = state_before != ZOO_CONNECTED_STATE;
  const bool reset = cause == ECONNRESET || cause == EPIPE;
  const bool closed = cause == EHOSTDOWN;  // what the library calls the end of a connection
  if (is_new) count_failure(reset);
  if (code == ZOPERATIONTIMEOUT || cause == ETIMEDOUT) {
    trouble_ = "no answer; is this a ZooKeeper server?";
  } else if (is_new && (reset || closed)) {
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

// Full are the servers if most of them turn us away, and go on to.
void Session::count_failure(bool reset) {
  ++failures_;
  resets_ = reset ? std::min(resets_ + 1, 2 * kTurnedAway) : std::max(resets_, 1U) - 1;
}

// What has not answered now may never do so, and the next call needs a connection that does.
Error Session::give_up() {
  hang_up();
  return silent();
}

// The library notices that the connection is gone, and goes on to the next server.
void Session::cut(int fd) {
  const bool was_dialling = !connected();
  ::shutdown(fd, SHUT_RDWR);
  for (int packets = 0; packets < 10'000 && !stopped(); ++packets) {
    const int code = process(ZOOKEEPER_READ | ZOOKEEPER_WRITE);
    if (code != ZOK) break;
  }
  (void)take_unpacked();
  if (was_dialling) count_failure(false);
  trouble_ = "no answer";
}

// Whether fd_ is still the library's.
bool Session::has_socket() const {
  if (!handle_) return false;
  const int state = zoo_state(handle());
  return state == ZOO_CONNECTED_STATE || state == ZOO_ASSOCIATING_STATE ||
         state == ZOO_CONNECTING_STATE;
}

// The next one goes on with the same session.  The watches are lost, so there may be news.
void Session::forget_connection() {
  news_ = true;
  former_ = *zoo_client_id(handle());
  zoo_set_watcher(handle(), nullptr);
  hang_up();
  handle_.reset();
}

void Session::hang_up() {
  if (has_socket()) cut(fd_);
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
    if (!open_until(deadline, Cancel())) return expired();
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
  return {Errc::unreachable, place_->shown + ": " + why, resets_ >= kTurnedAway};
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
