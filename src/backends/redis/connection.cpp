// The parser is hiredis'.  The socket is ours, since hiredis 0.14 cannot wait for a reply and for
// Cancel at once, opens sockets that children inherit, and raises SIGPIPE.  TLS stands between the
// two, if it is wanted (tls.cpp).
#include "backends/redis/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "backends/redis/describe.hpp"
#include "backends/redis/dial.hpp"
#include "backends/redis/sentinel.hpp"
#include "util/duration.hpp"
#include "util/exchange.hpp"
#include "util/poll.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

// RESP: https://redis.io/docs/latest/develop/reference/protocol-spec/
void append(std::string& out, const Command& command) {
  out += '*' + std::to_string(command.size()) + "\r\n";
  for (const std::string& argument : command) {
    out += '$' + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
}

// What a server that expects TLS may begin its answer with (RFC 8446, 5.1).
constexpr char kTlsAlert = 0x15;

constexpr Millis kToReachMaster{1'000};  // at least
constexpr Millis kMasterBelieved{1'000};
constexpr Millis kAsksAgain{200};

constexpr std::size_t kMostReceived = std::size_t{64} * 1024 * 1024;  // in answer to one question

// hiredis looks at an unfinished line from its start with each piece: not too small.
using Buffer = std::array<char, 64 * 1024>;

}  // namespace

Connection::Connection(Address address) : address_(std::move(address)) {}

Connection::~Connection() = default;

void Connection::drop() {
  socket_.reset();
  tls_.reset();
  reader_.reset();
  first_byte_.reset();
}

Error Connection::lost(const Error& why) {
  drop();
  return {why.code, address_.shown + ": " + why.message};
}

Error Connection::cancelled() {
  drop();
  return {Errc::cancelled, "stopped waiting for " + address_.shown};
}

Error Connection::lost(const std::string& why) { return lost(Error{Errc::unreachable, why}); }

// An idle connection that the server has closed meanwhile, or that brings what nobody asked for.
// Of TLS something may have come all the same: session tickets, a new key.
bool Connection::is_stale() {
  Buffer buffer;
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    if (got == 0 || !tls_) return true;
    const auto text = tls_->decrypt({buffer.data(), static_cast<std::size_t>(got)});
    if (!text || !text.value().empty()) return true;
  }
}

// An earlier master may live, and not know that it is one.  If no sentinel answers soon, this one
// is as good as before.
bool Connection::has_new_master(Deadline deadline, Cancel cancel) {
  if (!address_.sentinels) return false;
  const bool is_known = switches_ == address_.sentinels->switches;
  if (is_known && since(master_known_) < kMasterBelieved) return false;
  const auto master =
      ask_sentinels(std::min(deadline, after(Clock::now(), kSentinelAnswers)), cancel);
  return master && master.value() != address_.host;
}

Result<void> Connection::wait_for(short events, Deadline deadline, Cancel cancel) {
  std::array<pollfd, 2> fds{{{socket_.get(), events, 0}, {cancel.fd(), POLLIN, 0}}};
  const Deadline asked = Clock::now();
  util::poll(fds, deadline);
  if (fds[0].revents != 0) return {};
  if (fds[1].revents != 0) return cancelled();
  // In tenths of a second: when exactly we began to wait for this part means nothing.
  const auto tenths = (Clock::now() - asked + Millis{50}) / Millis{100};
  return lost("no answer within " +
              util::format_duration(std::max(tenths, Millis::rep{1}) * Millis{100}));
}

Result<void> Connection::send(std::span<const Command> commands, Deadline deadline, Cancel cancel) {
  std::string request;
  for (const Command& command : commands) append(request, command);
  if (!tls_) return write(request, deadline, cancel);
  if (auto ok = tls_->encrypt(request); !ok) return lost(ok.error());
  return write(tls_->take_output(), deadline, cancel);
}

Result<void> Connection::write(std::string_view bytes, Deadline deadline, Cancel cancel) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (auto ok = wait_for(POLLOUT, deadline, cancel); !ok) return ok;
    } else if (errno != EINTR) {
      // A server that dislikes our certificate says so, and closes, after the handshake.
      if (tls_) {
        if (auto more = read_some(); !more) return more.error();
      }
      return lost("the connection was lost");
    }
  }
  return {};
}

// What has come, into `buffer`; nothing if there is nothing to read now.
Result<std::string_view> Connection::read_socket(std::span<char> buffer) {
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    if (!first_byte_) first_byte_ = buffer[0];
    received_ += static_cast<std::size_t>(got);
    return std::string_view(buffer.data(), static_cast<std::size_t>(got));
  }
  if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) {
    return std::string_view();
  }
  std::string why = got == 0 ? "the server closed the connection" : "the connection was lost";
  if (!first_byte_ && tls_) {
    why += " at the start of TLS; does it speak TLS there?";
  } else if (!first_byte_ && address_.socket.empty()) {
    // What a Redis that expects TLS does, and twemproxy.
    why += " without a word; if it speaks TLS there, write rediss://; a proxy may lack a command";
  }
  return lost(why);
}

Result<void> Connection::feed(std::string_view bytes) {
  if (!tls_) {
    reader_->feed(bytes.data(), bytes.size());
    return {};
  }
  const auto text = tls_->decrypt(bytes);
  if (!text) return lost(text.error());
  reader_->feed(text.value().data(), text.value().size());
  return {};
}

// False: there is nothing to read now.
Result<bool> Connection::read_some() {
  Buffer buffer;
  const auto bytes = read_socket(buffer);
  if (!bytes) return bytes.error();
  if (bytes.value().empty()) return false;
  if (auto ok = feed(bytes.value()); !ok) return ok.error();
  return true;
}

Result<std::optional<Reply>> Connection::parse() {
  Reply reply;
  switch (reader_->next(reply)) {
    case Reader::Got::reply:
      return std::optional(std::move(reply));
    case Reader::Got::garbage:
      if (!tls_ && first_byte_ == kTlsAlert) return lost("it speaks TLS there; write rediss://");
      return lost("what answers there does not speak the Redis protocol");
    case Reader::Got::nothing:
      break;
  }
  return std::optional<Reply>();
}

Result<std::optional<Reply>> Connection::receive_now(unsigned& reads) {
  if (!socket_) return lost("the connection was lost");
  for (;;) {
    auto reply = parse();
    if (!reply || reply->has_value() || reads == 0) return reply;
    --reads;
    auto more = read_some();
    if (!more) return more.error();
    if (!*more) return std::optional<Reply>();
  }
}

Result<Reply> Connection::receive(Deadline deadline, Cancel cancel) {
  for (bool late = false;;) {
    if (!socket_) return lost("the connection was lost");
    auto reply = parse();
    if (!reply) return reply.error();
    if (reply->has_value()) return std::move(**reply);
    if (late) return lost("its answer did not end in time");
    const auto more = read_some();
    if (!more) return more.error();
    if (more.value()) {
      late = Clock::now() >= deadline;  // perhaps it is whole all the same, and only we are slow
      continue;
    }
    if (auto ok = wait_for(POLLIN, deadline, cancel); !ok) return ok.error();
  }
}

Result<void> Connection::shake_hands(Deadline deadline, Cancel cancel) {
  auto tls = start_tls(address_.host.host, *address_.tls);
  if (!tls) return lost(tls.error());
  tls_ = std::move(*tls);
  Buffer buffer;
  std::string_view bytes;
  for (;;) {
    const auto done = tls_->shake_hands(bytes);
    // Also of a failure the server is told, but nobody waits for that.
    const std::string output = tls_->take_output();
    if (!done) {
      (void)::send(socket_.get(), output.data(), output.size(), MSG_NOSIGNAL);
      return lost(done.error());
    }
    if (auto ok = write(output, deadline, cancel); !ok) return ok;
    // What came with the end of the handshake.
    if (done.value()) return feed({});
    do {
      // A server may send without end what TLS skips.
      if (first_byte_ && Clock::now() >= deadline) return lost("TLS has not begun in time");
      if (first_byte_ && cancel.requested()) return cancelled();
      if (auto ok = wait_for(POLLIN, deadline, cancel); !ok) {
        if (first_byte_ || ok.error().code == Errc::cancelled) return ok;
        // A Redis without TLS waits for the end of the line.
        return Error{ok.error().code, ok.error().message + "; does it speak TLS there?"};
      }
      const auto read = read_socket(buffer);
      if (!read) return read.error();
      bytes = read.value();
    } while (bytes.empty());
  }
}

Result<void> Connection::introduce(Deadline deadline, Cancel cancel) {
  std::vector<Command> commands;
  if (!address_.password.empty()) {
    commands.push_back({"AUTH"});
    if (!address_.user.empty()) commands.back().push_back(address_.user);
    commands.back().push_back(address_.password);
  }
  if (address_.database != 0) commands.push_back({"SELECT", std::to_string(address_.database)});
  if (address_.sentinels) commands.push_back({"ROLE"});
  if (commands.empty()) return {};
  // Answered before the first script is sent: that must not run in another database.
  if (auto ok = send(commands, deadline, cancel); !ok) return ok;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    auto reply = receive(deadline, cancel);
    if (!reply) return reply.error();
    if (reply->is("$")) continue;
    if (commands[i].front() == "ROLE" && reply->is("*$")) {
      if (reply->at(0).text == "master") continue;
      return lost("the sentinels name it as the master, but it is a replica");
    }
    if (!reply->is_error()) return unexpected_reply();
    drop();
    return server_error(address_, reply->text);
  }
  return {};
}

// The password is part of this and is not shown.
Result<void> Connection::connect(Deadline deadline, Cancel cancel) {
  if (socket_ && (is_stale() || has_new_master(deadline, cancel))) drop();
  if (socket_) return {};
  const Deadline begun = Clock::now();
  auto ok = open(deadline, cancel);
  util::log_exchange(address_.shown, "connect", ok ? "connected" : ok.error().message, begun);
  return ok;
}

Result<void> Connection::open(Deadline deadline, Cancel cancel) {
  deadline = std::min(deadline, after(Clock::now(), address_.patience));
  return address_.sentinels ? open_master(deadline, cancel) : open_host(deadline, cancel);
}

// One that hangs, or is lost, may have been replaced when the sentinels are asked again.
Result<void> Connection::open_master(Deadline deadline, Cancel cancel) {
  for (;;) {
    if (auto ok = find_master(deadline, cancel); !ok) return ok;
    const Millis time = std::max(remaining(deadline) / 2, kToReachMaster);
    auto ok = open_host(std::min(deadline, after(Clock::now(), time)), cancel);
    const Deadline again = after(Clock::now(), kAsksAgain);
    if (ok || ok.error().code != Errc::unreachable || again >= deadline) return ok;
    if (util::wait_readable(cancel.fd(), again)) return cancelled();
  }
}

Result<void> Connection::open_host(Deadline deadline, Cancel cancel) {
  auto socket = address_.socket.empty() ? dial(address_.host, deadline, cancel)
                                        : dial_unix(address_.socket, deadline, cancel);
  if (!socket) {
    if (socket.error().code == Errc::cancelled) return socket.error();
    return Error{socket.error().code, address_.shown + ": " + socket.error().message};
  }
  socket_ = std::move(*socket);
  reader_ = std::make_unique<Reader>();
  ++number_;
  if (address_.tls) {
    if (auto ok = shake_hands(deadline, cancel); !ok) return ok;
  }
  return introduce(deadline, cancel);
}

Result<HostPort> Connection::ask_sentinels(Deadline deadline, Cancel cancel) {
  switches_ = address_.sentinels->switches;
  master_known_ = Clock::now();
  return redis::find_master(*address_.sentinels, deadline, cancel);
}

Result<void> Connection::find_master(Deadline deadline, Cancel cancel) {
  auto master = ask_sentinels(deadline, cancel);
  if (!master) {
    if (master.error().code == Errc::cancelled) return master.error();
    return Error{master.error().code, address_.sentinels->shown() + ": " + master.error().message};
  }
  address_.host = std::move(*master);
  address_.shown =
      address_.sentinels->shown() + " at " + util::printable(dlock::shown(address_.host));
  return {};
}

Result<std::vector<Reply>> Connection::ask(std::span<const Command> commands, Deadline deadline,
                                           Cancel cancel) {
  if (auto ok = connect(deadline, cancel); !ok) return ok.error();
  const Deadline sent = Clock::now();
  auto replies = exchange(commands, deadline, cancel);
  if (util::exchanges_shown()) {
    util::log_exchange(address_.shown, describe(commands),
                       replies ? describe(*replies) : "no reply: " + replies.error().message, sent);
  }
  return replies;
}

Result<std::vector<Reply>> Connection::exchange(std::span<const Command> commands,
                                                Deadline deadline, Cancel cancel) {
  if (auto ok = send(commands, deadline, cancel); !ok) return ok.error();
  std::vector<Reply> replies;
  received_ = 0;
  while (replies.size() < commands.size()) {
    if (received_ > kMostReceived) return lost("answers with more than 64 MiB");
    auto reply = receive(deadline, cancel);
    if (!reply) return reply.error();
    replies.push_back(std::move(*reply));
  }
  // After a failover the same name may lead to the new master.
  if (std::any_of(replies.begin(), replies.end(), comes_from_replica)) drop();
  return replies;
}

Result<Reply> Connection::ask(const Command& command, Deadline deadline, Cancel cancel) {
  auto replies = ask(std::span(&command, 1), deadline, cancel);
  if (!replies) return replies.error();
  return std::move(replies->front());
}

}  // namespace dlock::redis
