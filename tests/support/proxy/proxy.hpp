// A TCP proxy that does to a connection what networks do.
#pragma once

#include <netinet/in.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/proxy/connection.hpp"
#include "support/proxy/faults.hpp"
#include "support/reserved_port.hpp"

namespace dlock::test {

/// Forwards connections to port() of 127.0.0.1 to a server, which need not run yet, in a thread of
/// its own.  All of it may be called by any thread, at any time; when a function has returned, what
/// it sets holds for all connections, old and new, until pass().
class Proxy {
 public:
  /// `host` is an IPv4 address.
  Proxy(const std::string& host, int port);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  int port() const { return port_.port(); }

  void delay_requests(Millis delay);
  void delay_replies(Millis delay);
  /// Keeps back what the server says, until release() or pass().
  void hold();
  void release();
  /// Replies come so many bytes at a time.
  void chunk(std::size_t bytes);

  /// What the server says is swallowed, and its end too: the connection looks open.  Connections
  /// that were there meanwhile stay so after pass(): TCP does not go on behind a gap.
  void drop();
  /// Connections are accepted, and what either side says is swallowed; as drop().
  void blackhole();
  /// New connections are refused.
  void refuse();
  /// Those beyond so many wait until another one ends.
  void limit(std::size_t most);
  /// New connections go to another server of the same host, as a name does after a failover.
  void forward_to(int port);
  /// Ends all connections there are, for the client by RST or FIN; for the server it is a FIN.
  void cut(Cut how = Cut::rst);
  /// Cuts fifty times, each 50 ms or so, at random; and then on, less and less often, until there
  /// is `enough`, for a minute or so at most.
  void cut_often(unsigned seed, const std::function<bool()>& enough);
  /// The next `count` requests (-1: all) in which `text` occurs, but for the first `skip`, are
  /// carried out, but when the reply comes it is swallowed, and the connection cut (RST).  A
  /// request is what was read at a time: for clients that wait for the reply before they go on.
  void lose_reply_to(std::string text, long count = 1, long skip = 0);

  /// No faults any more.
  void pass();

  /// How many connections were accepted so far, and how many there are.
  long connections();
  long open_connections();
  /// How many replies were lost by lose_reply_to().
  long lost_replies();
  std::uint64_t request_bytes();

 private:
  void run();
  void work();
  bool is_full() const;
  void accept_all();
  void listen();
  /// Runs it in the thread of the proxy.
  void call(const std::function<void()>& function);
  bool answer_call();

  sockaddr_in server_{};
  ReservedPort port_;
  Fd wake_;
  std::mutex turn_;  // of the callers
  std::mutex mutex_;
  std::condition_variable called_;
  const std::function<void()>* call_ = nullptr;

  // Of the thread.
  Fd listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Faults faults_;
  Counters counters_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace dlock::test
