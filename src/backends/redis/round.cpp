#include "backends/redis/round.hpp"

#include <algorithm>
#include <atomic>
#include <random>

#include "backends/redis/attempt.hpp"
#include "backends/redis/reply.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::redis {
namespace {

class Round {
 public:
  Round(Cluster& cluster, const Question& question, Deadline give_up, Cancel cancel)
      : cluster_(cluster),
        question_(question),
        give_up_(give_up),
        cancel_(cancel),
        asked_(Clock::now()),
        attempt_(cluster.size(), needed_for(cluster, question.request), asked_,
                 question.request.ttl),
        votes_(cluster.size()),
        errors_(cluster.size()),
        flags_(std::make_shared<Flags>(cluster.size())) {}

  Result<RoundResult> run();

 private:
  using State = Attempt::State;

  bool single() const { return cluster_.size() == 1; }
  State state() const { return attempt_.state(Clock::now()); }
  Millis timeout() const { return node_timeout(question_.request.ttl); }
  Cluster::End ask(const std::vector<unsigned>& nodes);
  void note(unsigned node, Result<Vote>& answer);
  Cluster::End write_token();
  void undo();
  std::optional<Error> refusal() const;
  bool is_settled() const;
  RoundResult not_held() const;

  Cluster& cluster_;
  const Question& question_;
  const Deadline give_up_;
  const Cancel cancel_;
  const Deadline asked_;
  Attempt attempt_;
  std::vector<std::optional<Vote>> votes_;
  std::vector<std::optional<Error>> errors_;
  // Shared with the threads of the servers, which may get to the request when all is over here.
  struct Flags {
    explicit Flags(unsigned nodes) : sent(nodes) {}
    std::vector<std::atomic<bool>> sent;  // this server may have got the request
    std::atomic<bool> over = false;
  };
  const std::shared_ptr<Flags> flags_;
  bool yields_ = false;  // to a waiter that was called
  std::minstd_rand random_{std::random_device{}()};
};

Cluster::End Round::ask(const std::vector<unsigned>& nodes) {
  const Deadline begun = Clock::now();
  std::vector<unsigned> prompt;  // who is worth to wait for
  for (const unsigned node : nodes) {
    if (cluster_.is_prompt(node)) prompt.push_back(node);
  }
  const auto request = [how = question_.how, head = question_.head, request = question_.request,
                        record = question_.record, single = single(), give_up = give_up_,
                        timeout = timeout(),
                        flags = flags_](Node& node, unsigned number, Cancel stop) {
    Try its = how;
    if (number != head) its = {.turn = Turn::once, .came = {}, .node = {}};
    if (single) return node.try_acquire(request, record, its, give_up, stop);
    its.node = number;
    if (auto ok = node.connect(give_up, stop); !ok) return Result<Vote>(ok.error());
    // In this order: so either we see that nobody wants it any more, or are told to undo it.
    flags->sent[number] = true;
    if (flags->over) return Result<Vote>(Error{Errc::cancelled, node.address().shown + ": late"});
    return node.try_acquire(request, record, its, after(Clock::now(), timeout), stop);
  };
  const auto take = [&](unsigned node, Result<Vote>& answer) {
    std::erase(prompt, node);
    note(node, answer);
    return state() != State::asking || yields_;
  };
  // Connecting can take its time, as long as too few have answered.  The head is only asked before
  // the others if it is prompt.
  const auto until = [&] {
    if (!single() && nodes.size() == 1) return after(begun, timeout());
    const auto answered =
        attempt_.grants().count(Tally::Answer::yes) + attempt_.grants().count(Tally::Answer::no);
    if (answered < attempt_.grants().needed()) return give_up_;
    return prompt.empty() ? Deadline() : after(begun, timeout());
  };
  return cluster_.gather<Vote>(nodes, request, take, until, cancel_);
}

void Round::note(unsigned node, Result<Vote>& answer) {
  if (!answer) {
    errors_[node] = answer.error();
    attempt_.silent(node);
    return;
  }
  votes_[node] = *answer;
  // What it has granted is counted under its other number.
  if (answer->kind == Vote::Kind::twin) question_.doubted[node] = true;
  if (answer->kind != Vote::Kind::granted) {
    attempt_.refused(node);
    yields_ = yields_ || (node == question_.head && question_.how.turn == Turn::wait &&
                          answer->kind == Vote::Kind::other_turn);
  } else if (question_.doubted[node]) {
    errors_[node] = Error{Errc::unreachable, cluster_.address(node).shown +
                                                 ": answers again, but did not when it was to undo "
                                                 "a grant"};
    attempt_.silent(node);
  } else {
    attempt_.granted(node, answer->fence);
  }
}

Cluster::End Round::write_token() {
  for (;;) {
    const std::vector<unsigned> writers = attempt_.writers();
    if (writers.empty() || state() != State::writing) return Cluster::End::all_answered;
    const std::uint64_t token = attempt_.token();
    const Deadline deadline = after(Clock::now(), timeout());
    std::vector<unsigned> open = writers;
    const auto request = [request = question_.request, record = question_.record, token, deadline](
                             Node& node, unsigned, Cancel stop) {
      return node.write_fence(request, record, token, deadline, stop);
    };
    const auto take = [&](unsigned node, Result<Written>& answer) {
      std::erase(open, node);
      if (!answer) {
        errors_[node] = answer.error();
        attempt_.unwritten(node, token);
      } else if (answer->kind == Written::Kind::written) {
        attempt_.written(node, token);
      } else if (answer->kind == Written::Kind::gone) {
        attempt_.vanished(node);
      } else {
        attempt_.overtaken(answer->counter, random_());
      }
      return state() != State::writing || attempt_.token() != token;
    };
    const auto end = cluster_.gather<Written>(
        writers, request, take, [&] { return deadline; }, cancel_);
    if (end == Cluster::End::cancelled) return end;
    if (attempt_.token() != token) continue;
    for (const unsigned node : open) attempt_.unwritten(node, token);
  }
}

// On all that may have granted it, also those that gave no answer: behind the request, on the same
// connection if that still stands.
void Round::undo() {
  flags_->over = true;
  std::vector<unsigned> nodes;
  for (unsigned node = 0; node < cluster_.size(); ++node) {
    const bool refused = votes_[node] && votes_[node]->kind != Vote::Kind::granted;
    if (flags_->sent[node] && !refused) nodes.push_back(node);
  }
  // An answer settles this undo, but not an earlier one: who is doubted stays so.
  std::vector<unsigned> settling;
  for (const unsigned node : nodes) {
    if (!question_.doubted[node]) settling.push_back(node);
    question_.doubted[node] = true;
  }
  std::vector<unsigned> prompt;
  for (const unsigned node : nodes) {
    if (cluster_.is_prompt(node)) prompt.push_back(node);
  }
  const Deadline deadline = after(Clock::now(), timeout());
  cluster_.gather<Removal>(
      nodes,
      [request = question_.request, timeout = timeout()](Node& node, unsigned, Cancel stop) {
        return node.remove(request, false, after(Clock::now(), timeout), stop);
      },
      [&](unsigned node, Result<Removal>& answer) {
        std::erase(prompt, node);
        if (answer && std::count(settling.begin(), settling.end(), node) > 0) {
          question_.doubted[node] = false;
        }
        return false;
      },
      [&] { return prompt.empty() ? Deadline() : deadline; }, Cancel());
}

// What makes the whole list of servers a bad one.
std::optional<Error> Round::refusal() const {
  for (unsigned node = 0; node < cluster_.size(); ++node) {
    const std::string& shown = cluster_.address(node).shown;
    if (votes_[node] && votes_[node]->kind == Vote::Kind::twin) {
      const auto other = static_cast<unsigned>(votes_[node]->place);
      return Error{Errc::invalid, cluster_.address(std::min(other, cluster_.size() - 1)).shown +
                                      " and " + shown + " are the same server: list it once"};
    }
    if (errors_[node] && is_replica(*errors_[node])) {
      return Error{Errc::invalid, errors_[node]->message + ": redlock needs independent masters"};
    }
  }
  return std::nullopt;
}

// Others have the lock, or come first.
bool Round::is_settled() const {
  const bool head_refuses = attempt_.grants().at(question_.head) == Tally::Answer::no;
  return yields_ || attempt_.grants().denied() || (question_.head_alone && head_refuses);
}

RoundResult Round::not_held() const {
  RoundResult out;
  out.head = question_.head;
  out.asked = asked_;
  const Tally& grants = attempt_.grants();
  const auto& at_head = votes_[question_.head];
  const bool head_refuses = at_head && at_head->kind != Vote::Kind::granted;
  out.kind = is_settled() ? RoundResult::Kind::refused : RoundResult::Kind::split;
  if (head_refuses) {
    out.vote = *at_head;
    return out;
  }
  // Wait where somebody else was granted it.  After a split, ask first whoever answers first.
  for (const auto wanted : {Tally::Answer::no, Tally::Answer::yes}) {
    for (unsigned node = 0; node < cluster_.size(); ++node) {
      if (grants.at(node) != wanted || !votes_[node]) continue;
      out.head = node;
      out.vote = *votes_[node];
      return out;
    }
  }
  return out;
}

Result<RoundResult> Round::run() {
  Cluster::End end = Cluster::End::all_answered;
  std::vector<unsigned> nodes = cluster_.all();
  if (question_.head_alone && cluster_.is_prompt(question_.head)) {
    end = ask({question_.head});
    const auto& vote = votes_[question_.head];
    if (vote && vote->kind != Vote::Kind::granted) nodes.clear();
    std::erase(nodes, question_.head);
    if (!vote && !errors_[question_.head]) attempt_.silent(question_.head);
  }
  if (end != Cluster::End::cancelled && !nodes.empty()) end = ask(nodes);
  for (unsigned node = 0; node < cluster_.size(); ++node) {
    const bool answered = votes_[node] || errors_[node];
    if (attempt_.grants().at(node) == Tally::Answer::open) attempt_.silent(node);
    if (answered) continue;
    errors_[node] = Error{Errc::unreachable, cluster_.address(node).shown + ": no answer in time"};
  }
  if (end != Cluster::End::cancelled && state() == State::writing && !yields_) end = write_token();
  if (state() == State::held && end != Cluster::End::cancelled && !yields_) {
    RoundResult held;
    held.kind = RoundResult::Kind::held;
    held.fence = attempt_.token();
    held.asked = asked_;
    return held;
  }
  if (!single()) undo();
  util::log(util::Level::trace, "asked for " + util::quoted(question_.request.key) + ": " +
                                    std::to_string(attempt_.grants().count(Tally::Answer::yes)) +
                                    " servers granted it, " +
                                    std::to_string(attempt_.grants().count(Tally::Answer::no)) +
                                    " refused, of " + std::to_string(cluster_.size()));
  if (end == Cluster::End::cancelled) return Error{Errc::cancelled, "stopped asking for the lock"};
  if (auto why = single() ? std::nullopt : refusal()) return *why;
  const Tally& grants = attempt_.grants();
  const unsigned answered = grants.count(Tally::Answer::yes) + grants.count(Tally::Answer::no);
  if (answered < grants.needed() && !is_settled()) return too_few(grants.needed(), errors_);
  return not_held();
}

}  // namespace

Result<RoundResult> ask_for_lock(Cluster& cluster, const Question& question, Deadline give_up,
                                 Cancel cancel) {
  return Round(cluster, question, give_up, cancel).run();
}

unsigned needed_for(const Cluster& cluster, const Request& request) {
  return quorum(cluster.size(), request.mode == Mode::slots ? request.slots : 1);
}

Millis node_timeout(Millis ttl) { return std::min(ttl / 20, Millis{200}); }

Error too_few(unsigned needed, const std::vector<std::optional<Error>>& errors) {
  if (errors.size() == 1 && errors[0]) return *errors[0];
  std::string why;
  std::size_t failed = 0;
  std::size_t denied = 0;
  for (const auto& error : errors) {
    if (!error) continue;
    ++failed;
    if (error->code == Errc::denied) ++denied;
    why += (why.empty() ? ": " : "; ") + error->message;
  }
  return {errors.size() - denied < needed ? Errc::denied : Errc::unreachable,
          std::to_string(errors.size() - failed) + " of " + std::to_string(errors.size()) +
              " servers answered, " + std::to_string(needed) + " are needed" + why};
}

}  // namespace dlock::redis
