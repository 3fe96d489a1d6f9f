#include "support/proxy/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace dlock::test {
namespace {

void set_no_delay(const Fd& fd) {
  const int on = 1;
  if (fd) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct Input {
  enum { bytes, nothing, end, error } what;
  std::string_view text;
};

Input read_some(const Fd& fd) {
  static thread_local std::array<char, 65'536> buffer;
  const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) return {Input::bytes, {buffer.data(), static_cast<std::size_t>(got)}};
  if (got == 0) return {Input::end, {}};
  return {errno == EAGAIN || errno == EINTR ? Input::nothing : Input::error, {}};
}

}  // namespace

Connection::Connection(Fd client, Fd server)
    : client_(std::move(client)), server_(std::move(server)) {
  set_no_delay(client_);
  set_no_delay(server_);
  if (!server_) swallow();
}

void Connection::swallow() {
  requests_.swallow();
  replies_.swallow();
}

void Connection::add_to(std::vector<pollfd>& fds) const {
  const auto add = [&](const Fd& fd, const Flow& in, const Flow& out) {
    const int events = (in.ended() ? 0 : POLLIN) | (out.blocked() ? POLLOUT : 0);
    // Without events poll would still tell of POLLHUP, again and again.
    fds.push_back({events != 0 ? fd.get() : -1, static_cast<short>(events), 0});
  };
  add(client_, requests_, replies_);
  add(server_, replies_, requests_);
}

Deadline Connection::due(const Faults& faults) const {
  return std::min(requests_.due(), faults.hold ? kNever : replies_.due());
}

void Connection::work(short client_events, short server_events, Faults& faults,
                      Counters& counters) {
  if (client_events != 0 && !requests_.ended()) read_requests(faults, counters);
  if (server_events != 0 && !replies_.ended() && !ended()) read_replies(faults, counters);
  if (!ended()) write(faults);
  const bool no_reply_can_come = !server_ || replies_.done();
  if (requests_.done() && no_reply_can_come) cut(Cut::fin);
}

void Connection::read_requests(Faults& faults, Counters& counters) {
  const Input input = read_some(client_);
  if (input.what == Input::nothing) return;
  const Deadline due = after(Clock::now(), faults.delay_requests);
  if (input.what == Input::bytes) {
    counters.request_bytes += input.text.size();
    if (!requests_.swallows() && is_to_lose(input.text, faults)) loses_reply_ = true;
    requests_.push(input.text, due);
  } else if (input.what == Input::end || requests_.swallows()) {
    requests_.push_end(due);
  } else {
    cut(Cut::rst);
  }
}

bool Connection::is_to_lose(std::string_view bytes, Faults& faults) {
  const std::string text = recent_.append(bytes);
  const std::size_t keep = faults.lose_text.empty() ? 0 : faults.lose_text.size() - 1;
  if (recent_.size() > keep) recent_.erase(0, recent_.size() - keep);
  if (faults.lose_count == 0 || text.find(faults.lose_text) == std::string::npos) return false;
  recent_.clear();  // what was found once is not found again
  if (faults.lose_skip > 0) {
    --faults.lose_skip;
    return false;
  }
  if (faults.lose_count > 0) --faults.lose_count;
  return true;
}

void Connection::read_replies(const Faults& faults, Counters& counters) {
  const Input input = read_some(server_);
  if (input.what == Input::nothing) return;
  const Deadline due = after(Clock::now(), faults.delay_replies);
  if (loses_reply_ && !replies_.swallows()) {
    ++counters.lost_replies;
    cut(Cut::rst);
  } else if (input.what == Input::bytes) {
    replies_.push(input.text, due);
  } else if (input.what == Input::end || replies_.swallows()) {
    replies_.push_end(due);
  } else {
    cut(Cut::rst);
  }
}

void Connection::write(const Faults& faults) {
  if (!requests_.flush(server_.get(), 0)) {
    if (!replies_.swallows()) return cut(Cut::rst);
    requests_.swallow();  // who does not hear of the server does not hear of its end either
  }
  if (!faults.hold && !replies_.flush(client_.get(), faults.chunk)) cut(Cut::rst);
}

void Connection::cut(Cut how) {
  const linger now{1, 0};
  if (client_ && how == Cut::rst) {
    ::setsockopt(client_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  client_.reset();
  server_.reset();
}

}  // namespace dlock::test
