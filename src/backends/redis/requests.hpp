// What a waiter asks of the servers of its lock, each by the thread of that server.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/acquire_protocol.hpp"
#include "backends/redis/cluster.hpp"
#include "backends/redis/subscriptions.hpp"

namespace dlock::redis {

/// What one server was asked by a waiter, and by the holder that it becomes.
struct Asked {
  std::atomic<bool> is_sent = false;        // so it may have something of this waiter
  std::atomic<bool> is_unanswered = false;  // it may still receive a request
  /// Nobody wants any more what this round and earlier ones ask for: if it was not sent yet, it is
  /// not sent.
  std::atomic<unsigned> undone = 0;
  std::atomic<bool> lacks_lock = false;  // which it had granted, as a renewal has found
};
using AskedOfEach = std::vector<Asked>;

/// Calls `ask`, which sends a request over the connection of `node` and returns a Result, and keeps
/// `asked` up to date.  What was not answered may arrive at any time later.
template <class Ask>
auto ask_and_note(Asked& asked, const Node& node, Ask ask) {
  asked.is_sent = true;
  const bool was_unanswered = asked.is_unanswered.exchange(true);
  auto answer = ask();
  // An error that the server has answered leaves the connection.
  if (answer || node.connection() != 0) asked.is_unanswered = was_unanswered;
  return answer;
}

class Requests {
 public:
  using Order = AcquireProtocol::Order;
  struct Answer {
    Order order;
    Result<Reply> reply;

    explicit operator bool() const { return static_cast<bool>(reply); }
    const Error& error() const { return reply.error(); }
  };

  /// Of one waiter.  `came`: since when it waits, which gives it its place in the queue.
  Requests(std::shared_ptr<Cluster> cluster, const Request& request, WaiterId waiter, Deadline came,
           std::shared_ptr<Subscriptions> subscriptions, Cancel cancel);

  /// Sends it to its server.  A single server answers before this returns, at the latest at
  /// `until`.
  void send(const Order& order, Deadline until);
  /// The next answer, if there is one now.
  std::optional<Answer> take();

  /// The holder that the waiter has seen: where several share the lock, it is shown again.
  void set_seen(std::string holder) { seen_ = std::move(holder); }

  const WaiterId& waiter() const { return its_->waiter; }
  const std::shared_ptr<AskedOfEach>& asked() const { return its_->asked; }
  /// When the last round was sent, for people.
  const std::string& acquired_at() const { return acquired_at_; }

 private:
  class Task;
  // What all requests of the waiter have in common: a task may outlive the waiter.
  struct Asker {
    Request request;
    WaiterId waiter;
    Deadline came;
    std::string servers;  // Cluster::list()
    std::shared_ptr<Subscriptions> subscriptions;
    std::shared_ptr<AskedOfEach> asked;
  };

  const std::shared_ptr<Cluster> cluster_;
  const std::shared_ptr<const Asker> its_;
  Cluster::Answers<Answer> answers_;
  std::string seen_;
  std::string acquired_at_;
  unsigned round_ = 0;
};

}  // namespace dlock::redis
