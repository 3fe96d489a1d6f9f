#include "backends/redis/leftovers.hpp"

#include <algorithm>
#include <set>

#include "backends/redis/quorum.hpp"

namespace dlock::redis {
namespace {

constexpr std::ptrdiff_t kMostOnAServer = 8;

}  // namespace

void Leftovers::add(const Request& request, unsigned node,
                    std::shared_ptr<const Outstanding> outstanding) {
  forget_undone();
  const auto is_there = [node](const Leftover& leftover) { return leftover.node == node; };
  if (std::count_if(list_.begin(), list_.end(), is_there) == kMostOnAServer) {
    list_.erase(std::find_if(list_.begin(), list_.end(), is_there));
  }
  list_.push_back({request, node, std::move(outstanding)});
}

void Leftovers::forget_undone() {
  std::erase_if(list_, [](const Leftover& leftover) { return leftover.undone->load(); });
}

Result<Removal> Leftovers::remove(const Leftover& leftover, Node& node, Deadline deadline,
                                  Cancel cancel) {
  const auto& outstanding = leftover.outstanding;
  const Removing how{.was_waiting = true,
                     .in_doubt = outstanding && (*outstanding)[leftover.node],
                     .unheard = true};
  auto removal = node.remove(leftover.request, how, deadline, cancel);
  if (removal) *leftover.undone = true;
  return removal;
}

// A server where something is under way is asked the next time: what is asked there then must not
// wait for this.
void Leftovers::ask_to_undo(Cluster& cluster) {
  forget_undone();
  if (list_.empty()) return;
  std::vector<bool> is_idle;
  for (const unsigned node : cluster.all()) is_idle.push_back(cluster.is_idle(node));
  for (const Leftover& leftover : list_) {
    if (!is_idle[leftover.node]) continue;
    Cluster::Answers<Removal> answers(cluster, Cancel());
    answers.ask(leftover.node, [leftover](Node& node, unsigned, Cancel stop) {
      return remove(leftover, node, after(Clock::now(), node_timeout(leftover.request.ttl)), stop);
    });
  }
}

Result<void> Leftovers::undo(Cluster& cluster, Deadline deadline, Cancel cancel) {
  forget_undone();
  if (list_.empty()) return {};
  std::vector<unsigned> awaited;
  Cluster::Answers<Removal> answers(cluster, cancel);
  for (const Leftover& leftover : list_) {
    if (cluster.is_prompt(leftover.node)) awaited.push_back(leftover.node);
    answers.ask(leftover.node, [leftover, deadline](Node& node, unsigned, Cancel stop) {
      return remove(leftover, node, deadline, stop);
    });
  }
  Result<void> undone;
  while (!awaited.empty()) {
    while (const auto letter = answers.take()) {
      if (cluster.size() == 1 && !letter->second) undone = letter->second.error();
      const auto it = std::find(awaited.begin(), awaited.end(), letter->first);
      if (it != awaited.end()) awaited.erase(it);
    }
    if (awaited.empty() || cluster.wait(deadline, cancel) != Cluster::End::enough) break;
  }
  forget_undone();
  std::set<unsigned> silent;
  for (const Leftover& leftover : list_) silent.insert(leftover.node);
  // This process may be about to exit.  If so many got what they were asked for, and not this,
  // nobody would get the lock for a ttl: it shall be on its way at least.
  if (cluster.size() > 1 && silent.size() >= quorum(cluster.size())) {
    cluster.let_finish(after(Clock::now(), 2 * node_timeout(list_.front().request.ttl)));
  }
  return undone;
}

}  // namespace dlock::redis
