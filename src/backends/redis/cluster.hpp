// The servers of a lock, each asked by a thread of its own, so that one that is slow keeps nobody
// waiting.  A single server is asked on the caller's thread: no thread, no hand-over.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/redis/node.hpp"
#include "util/fd.hpp"

namespace dlock::redis {

/// Used by one thread at a time.
class Cluster {
  template <class Answer>
  class AnswerQueue;

 public:
  Cluster(const std::vector<Address>& addresses, const std::string& prefix);
  /// Gives up what is under way.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()); }
  std::vector<unsigned> all() const;
  /// A hash of the list of the servers, the same for all clients with the same servers; "" if there
  /// is only one.
  const std::string& list() const { return list_; }
  /// Of each server in an order that is the same for all that use these, however they list them.
  const std::vector<unsigned>& ranks() const { return ranks_; }
  /// The server of that rank, or of the last one.
  unsigned ranked(unsigned rank) const;
  /// By which the scripts know the server; none if there is only one.
  std::optional<unsigned> number(unsigned node) const {
    return size() == 1 ? std::nullopt : std::optional(ranks_[node]);
  }
  std::string number_text(unsigned node) const {
    const auto its = number(node);
    return its ? std::to_string(*its) : "";
  }
  const Address& address(unsigned node) const { return workers_[node]->node.address(); }
  Names names(std::string_view key) const { return workers_[0]->node.names(key); }

  /// To talk to this one without others: only while nothing is under way there.
  Node& node(unsigned number) { return workers_[number]->node; }
  /// Something waits for what is under way there: to ask more would only pile up.
  bool has_backlog(unsigned node) const;
  /// It was asked something, ever.
  bool was_used(unsigned node) const { return workers_[node]->thread.joinable(); }
  /// It has answered the last time, or was never asked: it is worth to wait for it.
  bool answered_last_time(unsigned node) const { return !workers_[node]->silent; }

  /// Waits until nothing is under way on any server, or until the deadline.
  void wait_for_stragglers(Deadline deadline) const;

  enum class End { enough, all_answered, deadline, cancelled };

  /// The answers to some questions, in the order in which they come.  They may come after it has
  /// gone: then they are dropped.  An Answer is a Result, or has a Result's error().
  template <class Answer>
  class Answers {
   public:
    Answers(Cluster& cluster, Cancel cancel)
        : cluster_(cluster), cancel_(cancel), queue_(std::make_shared<AnswerQueue<Answer>>()) {}

    /// Asks by ask(Node&, number, Cancel) -> Answer (Errc::cancelled: it was not asked), behind
    /// what is still under way there. `ask` must own all that it needs, since it can outlive this.
    template <class Ask>
    void ask(unsigned number, Ask ask) {
      ++open_;
      if (cluster_.size() == 1) {
        return queue_->put(number, ask(cluster_.node(number), number, cancel_));
      }
      cluster_.post(
          number, [&cluster = cluster_, queue = queue_, ask = std::move(ask), number](Node& node) {
            auto answer = ask(node, number, Cancel(cluster.stop_.get()));
            if (!answer) cluster.note(number, answer.error());
            const bool was_asked = answer || answer.error().code != Errc::cancelled;
            const bool is_silent = !answer && answer.error().code == Errc::unreachable;
            if (was_asked) cluster.workers_[number]->silent = is_silent;
            queue->put(number, std::move(answer));
            cluster.notify();
          });
    }
    /// How many were asked and have not answered.
    std::size_t open() const { return open_; }
    /// The next one, if there is one now.
    std::optional<std::pair<unsigned, Answer>> take() {
      auto answer = queue_->take();
      if (answer) --open_;
      return answer;
    }

   private:
    Cluster& cluster_;
    const Cancel cancel_;
    std::shared_ptr<AnswerQueue<Answer>> queue_;
    std::size_t open_ = 0;
  };

  /// Until an answer may have come, or `also` is readable (`enough`).
  End wait(Deadline deadline, Cancel cancel, int also = -1) const;

  /// Asks each of `nodes`, and hands over each answer by take(number, Result<Answer>&) until that
  /// returns true: that is enough.  until() tells the deadline, which may depend on what has come.
  template <class Answer, class Ask, class Take, class Until>
  End gather(const std::vector<unsigned>& nodes, Ask ask, Take take, Until until, Cancel cancel) {
    Answers<Result<Answer>> answers(*this, cancel);
    for (const unsigned number : nodes) answers.ask(number, ask);
    for (;;) {
      while (auto answer = answers.take()) {
        if (take(answer->first, answer->second)) return End::enough;
      }
      if (answers.open() == 0) return End::all_answered;
      if (const End end = wait(until(), cancel); end != End::enough) return end;
    }
  }

  /// The same of one server, to its end.
  template <class Answer, class Ask>
  Result<Answer> call(unsigned node, Ask ask, Cancel cancel) {
    if (size() == 1) return ask(workers_[0]->node, cancel);
    std::optional<Result<Answer>> out;
    gather<Answer>(
        {node}, [ask](Node& its, unsigned, Cancel stop) { return ask(its, stop); },
        [&](unsigned, Result<Answer>& answer) {
          out = std::move(answer);
          return true;
        },
        [] { return kNever; }, cancel);
    if (out) return std::move(*out);
    return Error{Errc::cancelled, "stopped waiting for " + address(node).shown};
  }

 private:
  using Task = std::function<void(Node&)>;
  struct Worker {
    Worker(Address address, const std::string& prefix, bool is_one_of_several)
        : node(std::move(address), prefix, is_one_of_several) {}
    Node node;  // the thread's while it is busy

    mutable std::mutex mutex;
    mutable std::condition_variable news;
    std::deque<Task> tasks;
    bool busy = false;
    bool stopping = false;
    std::atomic<bool> silent = false;
    std::atomic<bool> is_known_replica = false;
    std::thread thread;
  };

  void note(unsigned node, const Error& error);
  void post(unsigned node, Task task);
  static void work(Worker& worker);
  void notify() const;

  std::string list_;
  const std::vector<unsigned> ranks_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Fd answered_;
  Fd stop_;
};

template <class Answer>
class Cluster::AnswerQueue {
 public:
  void put(unsigned node, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(node, std::move(answer));
  }
  std::optional<std::pair<unsigned, Answer>> take() {
    const std::lock_guard lock(mutex_);
    if (answers_.empty()) return std::nullopt;
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<unsigned, Answer>> answers_;
};

}  // namespace dlock::redis
