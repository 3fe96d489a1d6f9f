// The state of one acquire() while it asks and waits; acquire.cpp asks, acquire_wait.cpp waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/cluster.hpp"
#include "backends/redis/leftovers.hpp"
#include "backends/redis/record.hpp"
#include "backends/redis/round.hpp"
#include "backends/redis/subscription.hpp"
#include "core/backend.hpp"
#include "core/patience.hpp"
#include "util/text.hpp"

namespace dlock::redis {

constexpr Millis kAskAgain{500};  // where nobody calls us

class Acquisition {
 public:
  Acquisition(std::shared_ptr<Cluster> cluster, const Request& request, const Wait& wait)
      : cluster_(std::move(cluster)),
        request_(request),
        wait_(wait),
        names_(cluster_->names(request.key)),
        head_(first_of(*cluster_)),
        patience_(wait_, cluster_->address(head_).patience, request.key) {}

  Result<std::unique_ptr<Lease>> run();

 private:
  static unsigned first_of(const Cluster& cluster) {
    const auto& ranks = cluster.ranks();
    return static_cast<unsigned>(std::min_element(ranks.begin(), ranks.end()) - ranks.begin());
  }
  Result<std::unique_ptr<Lease>> get();
  Result<RoundResult> attempt(Turn turn);
  Result<void> join();
  void tell_of_asking(const Error& why);
  Result<void> join_somewhere();
  void move_to(unsigned head);
  void take_another_id(const Traces& traces);
  Result<void> undo_leftovers(Deadline give_up);
  Result<std::vector<Reply>> ask(std::vector<Command> commands);
  Result<std::vector<Reply>> ask_and_stay(std::vector<Command> commands);
  void warn_of_other_list();
  bool pause_after_split(unsigned& times, unsigned most_doublings);
  Result<void> go_round_again(const RoundResult& round);
  void plan(const Vote& vote);
  Result<Turn> wait_for_turn();
  Result<bool> read_calls(Turn& turn);
  bool look();
  bool look_as_deputy();
  bool look_for_room();
  bool still_queued(const Reply& rank, const Reply& record);
  void look_again_in(std::optional<Millis> time);

  bool tell();
  void tell(LockInfo info);
  bool look_elsewhere();
  void watch_foreign();
  bool is_watched() const {
    return watched_ != 0 && cluster_->is_idle(head_) &&
           watched_ == cluster_->node(head_).connection();
  }
  bool nobody_calls() const { return subscription_ && subscription_->nobody_calls(); }
  Result<void> undo();

  std::string record() const;
  std::string entry() const {
    return mode_text(request_.mode, 0).substr(0, 1) + ':' + request_.owner.id;
  }
  // For one server of which there are others.
  Deadline patience_with_head() const {
    constexpr Millis kAmongOthers{1'000};
    const Deadline until = patience_.call_until();
    return single() ? until : std::min(until, after(Clock::now(), kAmongOthers));
  }
  bool single() const { return cluster_->size() == 1; }
  bool time_is_up() const { return wait_.until <= Clock::now(); }
  Error busy() const { return {Errc::busy, util::in_quotes(request_.key) + " is busy"}; }
  Error cancelled() const {
    return {Errc::cancelled, "stopped waiting for " + util::in_quotes(request_.key)};
  }

  const std::shared_ptr<Cluster> cluster_;
  Request request_;
  const Wait& wait_;
  const Names names_;

  unsigned head_;            // the server in whose queue we wait
  bool head_first_ = false;  // since there was a split, or we wait
  unsigned splits_ = 0;      // in a row
  unsigned numberless_ = 0;  // the same, of splits without a number that is free
  unsigned moves_ = 0;       // in a row, since the head could not be joined
  bool is_deaf_ = false;     // no server takes our subscription
  bool has_told_of_asking_ = false;
  bool has_warned_ = false;
  Patience patience_;

  Leftovers leftovers_;

  std::unique_ptr<Subscription> subscription_;
  std::string acquired_at_;
  std::string came_;  // since when we wait, by the server
  int place_ = 0;     // in the queue, when last heard of
  Deadline look_at_ = kNever;
  bool deputy_ = false;    // somebody else was called: at look_at_ it must have come
  bool was_told_ = false;  // to be the deputy: else it found the lock free by itself
  std::optional<std::string> last_grant_;  // the counter, when it did so the first time
  bool foreign_ = false;                   // held by another program
  unsigned watched_ = 0;             // the connection of whose keys the server tells us; 0: of none
  bool joined_ = false;              // the queue has this id, or may have
  std::optional<std::string> seen_;  // the holder that was last seen at the head, or one of them
  std::optional<unsigned> seen_place_;  // ours, when on_blocked was called
  int looks_ = 0;                       // that nobody called us to
};

}  // namespace dlock::redis
