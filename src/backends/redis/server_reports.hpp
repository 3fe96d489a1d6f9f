// What each server has said to a waiter, and what they say together: pure reasoning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/redis/cluster.hpp"

namespace dlock::redis {

class ServerReports {
 public:
  explicit ServerReports(const Cluster& cluster) : cluster_(cluster), of_each_(cluster.size()) {}

  /// Of another waiter.
  void forget() {
    forget_answers();
    round_ = 0;
  }
  /// Another attempt begins.
  void forget_answers() { of_each_.assign(of_each_.size(), {}); }
  /// If it is a new round: what was said of holders before may not be so any more.
  void begin_round(unsigned round);

  /// `holder` has the lock there, "": nobody, or it is not known; `record`: what the holder wrote.
  void answered(unsigned server, const std::string& holder, const std::string& record);
  void failed(unsigned server, const Error& error) {
    of_each_[server] = {.is_there = true, .error = error};
  }

  // In this attempt:
  /// A server has neither answered nor failed.
  bool is_one_missing() const;
  bool has_failed(unsigned server) const { return of_each_[server].error.has_value(); }
  /// A majority has answered.
  bool has_quorum() const;
  /// None while a majority may still answer.  `is_over`: what is missing will not come.
  std::optional<Error> too_few(bool is_over) const;

  // In this round:
  const std::string& holder(unsigned server) const { return of_each_[server].holder; }
  /// A server that names the holder of so many that the others are no majority.
  std::optional<unsigned> majority_holder() const;
  /// The holder there was acquired with another list of servers.
  bool has_another_list(unsigned server) const { return of_each_[server].has_another_list; }
  std::optional<unsigned> with_another_list() const;

 private:
  struct OfOne {
    bool is_there = false;
    std::optional<Error> error = {};
    std::string holder = {};
    bool has_another_list = false;
  };
  bool is_majority(std::size_t servers) const;

  const Cluster& cluster_;
  std::vector<OfOne> of_each_;
  unsigned round_ = 0;
};

}  // namespace dlock::redis
