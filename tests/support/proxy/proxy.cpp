#include "support/proxy/proxy.hpp"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <system_error>

#include "util/poll.hpp"

namespace dlock::test {
namespace {

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw std::invalid_argument("no IPv4 address: " + host);
  }
  return address;
}

Fd tcp_socket() { return Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

// A refusal comes later, as an error when reading.
Fd start_connecting(const sockaddr_in& address) {
  Fd fd = tcp_socket();
  ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

}  // namespace

Proxy::Proxy(const std::string& host, int port)
    : server_(address_of(host, port)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  listen();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the other threads
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Proxy::~Proxy() {
  call([this] { stop_ = true; });
  thread_.join();
}

void Proxy::listen() {
  if (listener_) return;
  listener_ = tcp_socket();
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = address_of("127.0.0.1", port());
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    throw std::system_error(errno, std::generic_category(), "proxy: cannot listen");
  }
}

void Proxy::run() {
  do work();
  while (!answer_call() || !stop_);
}

void Proxy::work() {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {is_full() ? -1 : listener_.get(), POLLIN, 0}};
  Deadline due = kNever;
  for (const auto& connection : connections_) {
    connection->add_to(fds);
    due = std::min(due, connection->due(faults_));
  }
  util::poll(fds, due);
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i]->work(fds[2 + 2 * i].revents, fds[3 + 2 * i].revents, faults_, counters_);
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->ended(); });
  if (fds[1].revents != 0) accept_all();
}

bool Proxy::is_full() const { return faults_.most != 0 && connections_.size() >= faults_.most; }

void Proxy::accept_all() {
  while (!is_full()) {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    ++counters_.accepted;
    connections_.push_back(std::make_unique<Connection>(
        std::move(client), faults_.blackhole ? Fd() : start_connecting(server_)));
    if (faults_.drop) connections_.back()->drop_replies();
  }
}

void Proxy::call(const std::function<void()>& function) {
  const std::lock_guard turn(turn_);
  std::unique_lock lock(mutex_);
  call_ = &function;
  ::eventfd_write(wake_.get(), 1);
  called_.wait(lock, [this] { return call_ == nullptr; });
}

bool Proxy::answer_call() {
  const std::lock_guard lock(mutex_);
  if (call_ == nullptr) return false;
  eventfd_t ignored;
  ::eventfd_read(wake_.get(), &ignored);
  (*call_)();
  call_ = nullptr;
  called_.notify_all();
  return true;
}

void Proxy::forward_to(int port) {
  call([&] { server_.sin_port = htons(static_cast<in_port_t>(port)); });
}

void Proxy::delay_requests(Millis delay) {
  call([&] { faults_.delay_requests = delay; });
}
void Proxy::delay_replies(Millis delay) {
  call([&] { faults_.delay_replies = delay; });
}
void Proxy::hold() {
  call([this] { faults_.hold = true; });
}
void Proxy::release() {
  call([this] { faults_.hold = false; });
}
void Proxy::chunk(std::size_t bytes) {
  call([&] { faults_.chunk = bytes; });
}
void Proxy::drop() {
  call([this] {
    faults_.drop = true;
    for (const auto& connection : connections_) connection->drop_replies();
  });
}
void Proxy::blackhole() {
  call([this] {
    accept_all();  // there were connections to the server
    listen();
    faults_.blackhole = true;
    for (const auto& connection : connections_) connection->swallow();
  });
}
void Proxy::limit(std::size_t most) {
  call([&] { faults_.most = most; });
}
void Proxy::refuse() {
  call([this] {
    accept_all();  // their connect has succeeded
    listener_.reset();
  });
}
void Proxy::cut(Cut how) {
  call([&] {
    accept_all();
    for (const auto& connection : connections_) connection->cut(how);
    connections_.clear();
  });
}
void Proxy::cut_often(unsigned seed, const std::function<bool()>& enough) {
  std::mt19937 random(seed);
  for (unsigned i = 0; i < 50 || (i < 400 && !enough()); ++i) {
    std::this_thread::sleep_for(Millis{static_cast<int>(random() % (100 + i))});
    cut(i % 2 == 0 ? Cut::rst : Cut::fin);
  }
}

void Proxy::lose_reply_to(std::string text, long count, long skip) {
  call([&] {
    faults_.lose_text = text;
    faults_.lose_count = count;
    faults_.lose_skip = skip;
  });
}
void Proxy::pass() {
  call([this] {
    faults_ = Faults();
    listen();
  });
}

long Proxy::connections() {
  long count = 0;
  call([&] { count = counters_.accepted; });
  return count;
}
long Proxy::open_connections() {
  long count = 0;
  call([&] { count = static_cast<long>(connections_.size()); });
  return count;
}
long Proxy::lost_replies() {
  long count = 0;
  call([&] { count = counters_.lost_replies; });
  return count;
}
std::uint64_t Proxy::request_bytes() {
  std::uint64_t count = 0;
  call([&] { count = counters_.request_bytes; });
  return count;
}

}  // namespace dlock::test
