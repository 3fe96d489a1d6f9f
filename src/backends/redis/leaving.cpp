#include "backends/redis/leaving.hpp"

#include <algorithm>
#include <climits>

#include "backends/redis/quorum.hpp"
#include "backends/redis/server_errors.hpp"

namespace dlock::redis {
namespace {

using Vote = Votes::Vote;

// For how long several servers are waited for: on a busy machine they are slow.
constexpr Millis kLeaving{1'000};

}  // namespace

void HolderAnswers::put_error(unsigned server, const Error& error) {
  votes_.put(server, Vote::silent);
  errors_[server] = error;
}

void HolderAnswers::put_no(unsigned server, const std::string& why, bool is_free) {
  votes_.put(server, Vote::no);
  if (why_.empty()) why_ = why;
  is_free_ = is_free;
}

Result<void> HolderAnswers::verdict() const {
  if (votes_.reached()) return {};
  if (is_cancelled_) {
    return Error{Errc::cancelled, "stopped waiting for " + cluster_.address(0).shown};
  }
  if (votes_.denied()) return lost();
  // A refusal, too, tells nothing of the lock: it may be ours all the same.
  Error error = no_majority();
  if (error.code != Errc::cancelled) error.code = Errc::unreachable;
  return error;
}

Error HolderAnswers::lost() const {
  const bool is_single = cluster_.size() == 1;
  const std::string& server = cluster_.address(0).shown;
  if (!why_.empty()) return taken_away(is_single ? server : "", key_, why_);
  if (!is_single) {
    return {Errc::lost, std::to_string(votes_.count(Vote::no)) + " of " +
                            std::to_string(cluster_.size()) +
                            " servers do not have the lock any more: it expired, was deleted, "
                            "or they lost their data"};
  }
  if (is_free_) {
    return {Errc::lost, server +
                            ": the lock is not there any more: it expired, was deleted, or the "
                            "server lost its data"};
  }
  return {Errc::lost, server + ": somebody else holds it now"};
}

Error HolderAnswers::no_majority() const {
  auto errors = errors_;
  for (const unsigned server : cluster_.all()) {
    if (votes_.at(server) == Vote::open) errors[server] = no_answer(cluster_, server);
  }
  return too_few(votes_.needed(), errors);
}

HolderAnswers leave_for_good(Cluster& cluster, const Leaver& leaver, Millis moment,
                             Deadline deadline, Cancel cancel) {
  const bool is_single = cluster.size() == 1;
  const Millis timeout = answer_within(leaver.request.ttl);
  const Deadline until = is_single ? deadline : std::min(deadline, after(Clock::now(), kLeaving));
  HolderAnswers answers(cluster, leaver.request.key);
  std::vector<unsigned> servers;
  unsigned sent = 0;
  std::vector<unsigned> awaited;  // that are not known to be slow
  for (const unsigned server : cluster.all()) {
    Asked& asked = (*leaver.asked)[server];
    asked.undone = UINT_MAX;
    if (!asked.is_sent && !cluster.was_used(server)) continue;
    servers.push_back(server);
    const bool is_awaited = server == leaver.queue_server || cluster.answered_last_time(server);
    if (asked.is_sent && is_awaited) awaited.push_back(server);
    if (asked.is_sent) ++sent;
  }
  Deadline for_the_others = kNever;
  const auto end = cluster.gather<LeaveAnswer>(
      servers,
      [waiter = leaver.waiter, round = leaver.round, until, timeout, is_single,
       asked = leaver.asked](Node& node, unsigned server, Cancel stop) -> Result<LeaveAnswer> {
        // Only now: what was sent before this has come to its end.
        const Asked& its = (*asked)[server];
        if (!its.is_sent) return Error{Errc::cancelled, node.address().shown + ": not asked"};
        // Behind a server that is slow, a thread may come to it when `until` is over: it is sent
        // all the same, or a grant that came late would stay.
        const Deadline at_least = is_single ? Deadline() : after(Clock::now(), timeout);
        const bool in_doubt = its.is_unanswered;
        auto reply = node.run(call(waiter, round, Leave{.final = true, .in_doubt = in_doubt}),
                              std::max(until, at_least), stop, in_doubt);
        if (!reply) return reply.error();
        return leave_answer(reply.value());
      },
      [&](unsigned server, const Result<LeaveAnswer>& answer) {
        std::erase(awaited, server);
        if (!answer) {
          answers.put_error(server, answer.error());
        } else if (answer.value().was_held) {
          answers.put_yes(server);
        } else {
          answers.put_no(server, answer.value().why, true);
        }
        return false;
      },
      [&] {
        if (is_single) return until;
        const Votes& votes = answers.votes();
        const unsigned answered = votes.count(Vote::yes) + votes.count(Vote::no);
        const bool is_queue_open = std::ranges::count(awaited, leaver.queue_server) > 0;
        if (answered < std::min(votes.needed(), sent) || is_queue_open) return until;
        if (awaited.empty()) return Deadline();
        for_the_others = std::min(for_the_others, after(Clock::now(), moment));
        return std::min(until, for_the_others);
      },
      cancel);
  if (end == Cluster::End::cancelled) answers.cancel();
  return answers;
}

}  // namespace dlock::redis
