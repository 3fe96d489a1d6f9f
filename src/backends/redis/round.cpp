#include "backends/redis/round.hpp"

#include <algorithm>
#include <atomic>
#include <random>

#include "backends/redis/attempt.hpp"
#include "backends/redis/ballot.hpp"
#include "backends/redis/reply.hpp"
#include "util/log.hpp"
#include "util/poll.hpp"
#include "util/random_id.hpp"
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
        attempt_(cluster.size(), quorum(cluster.size()), asked_, question.request.ttl,
                 question.request.mode == Mode::slots ? question.request.slots : 0),
        answers_(cluster, cancel),
        ballot_(cluster.ranks(), quorum(cluster.size()), question.head),
        errors_(cluster.size()),
        flags_(std::make_shared<Flags>(cluster.size())),
        asked_to_write_(cluster.size()) {}

  Result<RoundResult> run();

 private:
  using State = Attempt::State;

  bool single() const { return cluster_.size() == 1; }
  State state() const { return attempt_.state(Clock::now()); }
  Millis timeout() const { return node_timeout(question_.request.ttl); }
  Cluster::End ask(const std::vector<unsigned>& nodes);
  Cluster::End insist(Cluster::End end);
  void note(unsigned node, Result<Vote>& answer);
  void note_votes();
  Cluster::End write_token();
  void ask_to_write(Cluster::Answers<Written>& written, unsigned node, std::uint64_t token,
                    Deadline deadline);
  void spread_token();
  void note_write(unsigned node, std::uint64_t token, Result<Written>& answer);
  void undo();
  void leave_traces();
  std::optional<Error> refusal() const;
  bool is_left_in_other_mode(unsigned unknown) const;
  bool head_keeps_us_out() const;
  bool is_settled() const;
  bool is_decided() const;
  RoundResult not_held() const;

  Cluster& cluster_;
  const Question& question_;
  const Deadline give_up_;
  const Cancel cancel_;
  const Deadline asked_;
  Attempt attempt_;
  Cluster::Answers<Vote> answers_;
  Ballot ballot_;
  std::vector<std::optional<Error>> errors_;
  // Shared with the threads of the servers, which may get to the request when all is over here.
  struct Flags {
    explicit Flags(unsigned nodes) : sent(nodes), outstanding(nodes), granted(nodes) {}
    std::vector<std::atomic<bool>> sent;  // this server may have got the request
    Outstanding outstanding;              // and has not answered
    std::vector<std::atomic<bool>> granted;
    std::atomic<unsigned> slot = 0;        // set before the token
    std::atomic<std::uint64_t> token = 0;  // that is being written
    std::atomic<bool> over = false;
  };
  const std::shared_ptr<Flags> flags_;
  std::vector<std::uint64_t> asked_to_write_;  // the token, of each server
  bool yields_ = false;                        // to a waiter that was called
  std::minstd_rand random_{util::random_seed()};
};

// What fails for want of answers goes on: the others shall not be named as silent.  And who is to
// wait hears first what stands at the head: all should wait in one queue, if that is any good.
bool Round::is_decided() const {
  if (state() == State::asking) return yields_;
  if (state() != State::failed) return true;
  const unsigned head = question_.head;
  const bool head_is_open = !ballot_.at(head) && !errors_[head] && cluster_.is_prompt(head);
  return is_settled() && (question_.how.turn == Turn::once || !head_is_open);
}

Cluster::End Round::ask(const std::vector<unsigned>& nodes) {
  const auto request = [how = question_.how, head = question_.head, request = question_.request,
                        record = question_.record, single = single(), give_up = give_up_,
                        timeout = timeout(),
                        flags = flags_](Node& node, unsigned number, Cancel stop) {
    Try its = how;
    if (number != head) its = {.turn = Turn::once, .came = {}};
    its.wants_number = number == head;
    if (auto ok = node.connect(give_up, stop); !ok) return Result<Vote>(ok.error());
    // In this order: so either we see that nobody wants it any more, or are told to undo it.
    flags->sent[number] = true;
    if (flags->over) return Result<Vote>(Error{Errc::cancelled, node.address().shown + ": late"});
    flags->outstanding[number] = true;
    const Deadline until = single ? give_up : after(Clock::now(), timeout);
    auto vote = node.try_acquire(request, record, its, until, stop);
    // An error that was answered leaves the connection; that of a replica may be of a failover.
    if (vote || node.connection() != 0) flags->outstanding[number] = false;
    if (!vote || vote->kind != Vote::Kind::granted) return vote;
    // If nobody waits for it any more; the more servers have this token, the larger the next one
    // is. In this order: either we see the token, or it is seen that we have granted.
    flags->granted[number] = true;
    if (const std::uint64_t token = flags->token; token != 0) {
      flags->outstanding[number] = true;
      const auto written = node.write_agreed(request, record, {token, flags->slot},
                                             after(Clock::now(), timeout), stop);
      if (written || node.connection() != 0) flags->outstanding[number] = false;
    }
    return vote;
  };
  const Deadline begun = Clock::now();
  for (const unsigned node : nodes) answers_.ask(node, request);
  for (;;) {
    note_votes();
    if (is_decided()) return Cluster::End::enough;
    if (answers_.open() == 0) return Cluster::End::all_answered;
    // Connecting can take its time, as long as too few have answered.  The head is only asked
    // before the others if it is prompt.
    const Tally& grants = attempt_.grants();
    const bool enough =
        grants.count(Tally::Answer::yes) + grants.count(Tally::Answer::no) >= grants.needed();
    const bool prompt = std::any_of(nodes.begin(), nodes.end(), [&](unsigned node) {
      return !ballot_.at(node) && !errors_[node] && cluster_.is_prompt(node);
    });
    Deadline until = give_up_;
    if (enough || state() == State::failed || (!single() && nodes.size() == 1)) {
      until = after(begun, timeout());
    }
    if (enough && !prompt) until = Deadline();
    if (const auto end = cluster_.wait(until, cancel_); end != Cluster::End::enough) return end;
  }
}

// With the head in our hands we ask those again that have refused: who has just released the lock,
// or must undo since it did not get the head, may have reached the head first.
Cluster::End Round::insist(Cluster::End end) {
  const Deadline give_up = after(asked_, timeout() / 4);
  for (Millis pause{1}; end != Cluster::End::cancelled && state() == State::failed; pause *= 2) {
    const Deadline next = after(Clock::now(), pause + Millis{random_() % 2});
    if (!ballot_.grants(question_.head) || next >= give_up) return end;
    if (util::wait_readable(cancel_.fd(), next)) return Cluster::End::cancelled;
    std::vector<unsigned> nodes;
    for (const unsigned node : cluster_.all()) {
      if (attempt_.grants().at(node) == Tally::Answer::no) nodes.push_back(node);
    }
    if (nodes.empty()) return end;
    for (const unsigned node : nodes) {
      attempt_.asked_again(node);
      ballot_.take_back(node);
    }
    end = ask(nodes);
  }
  return end;
}

void Round::note_votes() {
  while (auto letter = answers_.take()) note(letter->first, letter->second);
}

void Round::note(unsigned node, Result<Vote>& answer) {
  if (!answer) {
    errors_[node] = answer.error();
    attempt_.silent(node);
    return;
  }
  ballot_.put(node, *answer);
  if (answer->kind == Vote::Kind::granted) {
    return attempt_.granted(node, answer->fence, answer->clock_ms, answer->numbers);
  }
  attempt_.refused(node);
  // What it has granted is counted under its other number.
  yields_ = yields_ || (node == question_.head && question_.how.turn == Turn::wait &&
                        answer->kind == Vote::Kind::other_turn);
}

void Round::note_write(unsigned node, std::uint64_t token, Result<Written>& answer) {
  if (!answer) {
    errors_[node] = answer.error();
    attempt_.unwritten(node, token);
  } else if (answer->kind == Written::Kind::written) {
    attempt_.written(node, token);
  } else if (answer->kind == Written::Kind::gone) {
    attempt_.vanished(node);
  } else if (answer->kind == Written::Kind::taken) {
    attempt_.taken(node);
  } else {
    attempt_.overtaken(answer->counter, random_());
  }
}

void Round::ask_to_write(Cluster::Answers<Written>& written, unsigned node, std::uint64_t token,
                         Deadline deadline) {
  asked_to_write_[node] = token;
  written.ask(node, [request = question_.request, record = question_.record,
                     agreed = Agreed{token, attempt_.slot()}, flags = flags_,
                     deadline](Node& its, unsigned number, Cancel stop) {
    // Not answered, it may come to a later attempt with this id.  An earlier token may, too.
    const bool was_outstanding = flags->outstanding[number].exchange(true);
    auto answer = its.write_agreed(request, record, agreed, deadline, stop);
    if (answer || its.connection() != 0) flags->outstanding[number] = was_outstanding;
    return answer;
  });
}

// Those that have granted it just when the majority was there.  Nobody waits for their answers.
void Round::spread_token() {
  Cluster::Answers<Written> written(cluster_, cancel_);
  for (const unsigned node : cluster_.all()) {
    if (!flags_->granted[node] || asked_to_write_[node] == attempt_.token()) continue;
    ask_to_write(written, node, attempt_.token(), after(Clock::now(), timeout()));
  }
}

// To all that have granted it, also while this goes on.
Cluster::End Round::write_token() {
  flags_->slot = attempt_.slot();
  while (state() == State::writing) {
    Cluster::Answers<Written> written(cluster_, cancel_);
    const std::uint64_t token = attempt_.token();
    flags_->token = token;
    const Deadline deadline = after(Clock::now(), timeout());
    while (state() == State::writing && attempt_.token() == token) {
      for (const unsigned node : attempt_.writers()) ask_to_write(written, node, token, deadline);
      const auto end = cluster_.wait(deadline, cancel_);
      if (end == Cluster::End::cancelled) return end;
      while (auto letter = written.take()) note_write(letter->first, token, letter->second);
      note_votes();
      if (end != Cluster::End::deadline) continue;
      for (const unsigned node : cluster_.all()) {
        if (attempt_.writes().at(node) == Tally::Answer::open) attempt_.unwritten(node, token);
      }
    }
  }
  return Cluster::End::enough;
}

// On all that may have granted it.  Where the request was not answered, the connection has ended:
// it may come after this, and must take nothing then.
void Round::undo() {
  flags_->over = true;
  std::vector<unsigned> nodes;
  std::vector<unsigned> awaited;
  for (const unsigned node : cluster_.all()) {
    if (!flags_->sent[node] || ballot_.refuses(node)) continue;
    nodes.push_back(node);
    if (cluster_.is_prompt(node)) awaited.push_back(node);
  }
  question_.traces.in_doubt = nodes;
  const Deadline deadline = after(Clock::now(), timeout());
  cluster_.gather<Removal>(
      nodes,
      [request = question_.request, timeout = timeout(), flags = flags_, prompt = awaited](
          Node& node, unsigned number, Cancel stop) {
        const Removing how{
            .in_doubt = flags->outstanding[number],
            .unheard = std::find(prompt.begin(), prompt.end(), number) == prompt.end()};
        return node.remove(request, how, after(Clock::now(), timeout), stop);
      },
      [&](unsigned node, Result<Removal>& answer) {
        std::erase(awaited, node);
        if (answer) std::erase(question_.traces.in_doubt, node);
        return false;
      },
      [&] { return awaited.empty() ? Deadline() : deadline; }, Cancel());
}

// What the only server has granted too late, or may have granted, is undone later (acquire.cpp): at
// this moment it may not answer.
void Round::leave_traces() {
  Traces& traces = question_.traces;
  if (single()) {
    if (flags_->sent[0] && !ballot_.refuses(0)) traces.in_doubt = cluster_.all();
  } else {
    undo();
  }
  traces.outstanding = {flags_, &flags_->outstanding};
  traces.id_is_spent = !traces.in_doubt.empty() ||
                       std::any_of(flags_->outstanding.begin(), flags_->outstanding.end(),
                                   [](const auto& one) { return one.load(); });
}

// What makes the whole list of servers a bad one.
std::optional<Error> Round::refusal() const {
  for (const unsigned node : cluster_.all()) {
    const auto& vote = ballot_.at(node);
    if (vote && vote->kind == Vote::Kind::twin) return twin_error(cluster_, node, vote->twin);
  }
  const auto other = ballot_.with_another_list(cluster_.list());
  if (other && state() == State::held) {
    return Error{Errc::invalid, cluster_.address(*other).shown + ": " +
                                    util::in_quotes(question_.request.key) +
                                    " is held by a client with another list of servers, so a "
                                    "majority of these means nothing: give all the same list"};
  }
  return std::nullopt;
}

// Held in another mode, but by fewer than could hold it so: somebody is about to give it back, or
// has left it there.
bool Round::is_left_in_other_mode(unsigned unknown) const {
  return ballot_.count(Vote::Kind::other_mode) + unknown < quorum(cluster_.size());
}

bool Round::head_keeps_us_out() const {
  return ballot_.refuses(question_.head) &&
         ballot_.at(question_.head)->kind != Vote::Kind::other_mode;
}

// Others have the lock, or come first.  That it is held in another mode ends the wait, so more must
// say it than are needed to refuse.
bool Round::is_settled() const {
  if (yields_ || (question_.head_alone && head_keeps_us_out())) return true;
  const Ballot::Refusal refusal = ballot_.common_refusal();
  if (!refusal.denies) return false;
  const auto& vote = ballot_.at(refusal.head);
  return vote->kind != Vote::Kind::other_mode || !is_left_in_other_mode(0);
}

RoundResult Round::not_held() const {
  RoundResult out;
  const bool lost_race = attempt_.lost_race();
  out.lacks_number = lost_race || attempt_.lacks_number();
  // Where all numbers are taken, whoever leaves a server that is full calls us.  Where no server is
  // full, nobody would.  Nor where a number is free: what fills a server may be left from holders
  // that have gone, so after a race we ask again.
  const std::vector<unsigned> all = cluster_.all();
  const bool somebody_refuses =
      out.lacks_number ? std::any_of(all.begin(), all.end(),
                                     [this](unsigned node) { return ballot_.refuses(node); })
                       : attempt_.grants().count(Tally::Answer::no) > 0;
  const bool waits =
      !lost_race && (is_settled() || (somebody_refuses && (out.lacks_number || !question_.meets)));
  out.kind = waits ? RoundResult::Kind::refused : RoundResult::Kind::split;
  const Ballot::Refusal refusal = ballot_.common_refusal();
  out.asked = asked_;
  out.other_list = ballot_.with_another_list(cluster_.list()).has_value();
  out.head = question_.head;
  if (out.kind == RoundResult::Kind::split) {
    out.head = ballot_.meeting_point(lost_race);
  } else if (!yields_ && (refusal.denies || !ballot_.refuses(question_.head))) {
    out.head = refusal.head;
  }
  if (const auto& vote = ballot_.at(out.head)) out.vote = *vote;
  unsigned unknown = 0;
  for (const unsigned node : cluster_.all()) unknown += ballot_.at(node) ? 0 : 1;
  if (out.vote.kind == Vote::Kind::other_mode && is_left_in_other_mode(unknown)) {
    out.vote.kind = Vote::Kind::held;
    if (question_.meets) out.kind = RoundResult::Kind::split;
  }
  return out;
}

Result<RoundResult> Round::run() {
  Cluster::End end = Cluster::End::all_answered;
  std::vector<unsigned> nodes = cluster_.all();
  if (question_.head_alone && cluster_.is_prompt(question_.head)) {
    end = ask({question_.head});
    if (head_keeps_us_out()) nodes.clear();
    std::erase(nodes, question_.head);
    if (!ballot_.at(question_.head) && !errors_[question_.head]) attempt_.silent(question_.head);
  }
  if (end != Cluster::End::cancelled && !nodes.empty()) end = ask(nodes);
  if (question_.head_alone) end = insist(end);
  if (end != Cluster::End::cancelled && state() == State::writing && !yields_) end = write_token();
  const bool held = state() == State::held && end != Cluster::End::cancelled && !yields_;
  const auto why = single() ? std::nullopt : refusal();
  if (held && !why) {
    if (!single()) spread_token();
    // No process keeps the lock: this one is about to exit.  The servers that are a moment slower
    // than the majority get the lock too, so that it survives if one of the others loses its data.
    if (question_.request.owner.lease) {
      cluster_.let_finish(after(Clock::now(), straggler_timeout(question_.request.ttl)));
    }
    RoundResult out;
    out.kind = RoundResult::Kind::held;
    out.agreed = {attempt_.token(), attempt_.slot()};
    out.asked = asked_;
    out.head = question_.head;
    out.outstanding = {flags_, &flags_->outstanding};
    if (const auto& vote = ballot_.at(out.head)) out.vote = *vote;
    return out;
  }
  leave_traces();
  const Tally& grants = attempt_.grants();
  const unsigned granted = grants.count(Tally::Answer::yes);
  const unsigned refused = grants.count(Tally::Answer::no);
  util::log(util::Level::trace, "asked for " + util::in_quotes(question_.request.key) + ": " +
                                    std::to_string(granted) + " servers granted it, " +
                                    std::to_string(refused) + " refused, of " +
                                    std::to_string(cluster_.size()));
  if (end == Cluster::End::cancelled) return Error{Errc::cancelled, "stopped asking for the lock"};
  if (why) return *why;
  if (granted + refused < grants.needed() && !is_settled()) {
    for (const unsigned node : cluster_.all()) {
      if (ballot_.at(node) || errors_[node]) continue;
      errors_[node] =
          Error{Errc::unreachable, cluster_.address(node).shown + ": no answer in time"};
    }
    return too_few(grants.needed(), errors_);
  }
  return not_held();
}

}  // namespace

Result<RoundResult> ask_for_lock(Cluster& cluster, const Question& question, Deadline give_up,
                                 Cancel cancel) {
  return Round(cluster, question, give_up, cancel).run();
}

Millis node_timeout(Millis ttl) { return std::min(ttl / 20, Millis{200}); }
Millis straggler_timeout(Millis ttl) { return std::min(ttl / 20, Millis{1'000}); }

Error twin_error(const Cluster& cluster, unsigned node, unsigned twin) {
  return {Errc::invalid, cluster.address(cluster.ranked(twin)).shown + " and " +
                             cluster.address(node).shown + " are the same server: list it once"};
}

Error too_few(unsigned needed, const std::vector<std::optional<Error>>& errors) {
  if (errors.size() == 1 && errors[0]) return *errors[0];
  std::string why;
  std::size_t failed = 0;
  std::size_t denied = 0;
  std::size_t invalid = 0;
  std::size_t conflict = 0;
  std::size_t full = 0;
  for (const auto& error : errors) {
    if (!error) continue;
    ++failed;
    if (error->code == Errc::denied) ++denied;
    if (error->code == Errc::invalid || error->code == Errc::unsupported) ++invalid;
    if (error->code == Errc::conflict) ++conflict;
    if (error->is_full) ++full;
    why += (why.empty() ? ": " : "; ") + error->message;
  }
  const bool will_last = errors.size() - denied - invalid - conflict < needed;
  return {!will_last     ? Errc::unreachable
          : denied > 0   ? Errc::denied
          : conflict > 0 ? Errc::conflict
                         : Errc::invalid,
          std::to_string(errors.size() - failed) + " of " + std::to_string(errors.size()) +
              " servers answered, " + std::to_string(needed) + " are needed" + why,
          errors.size() - failed + full >= needed};
}

}  // namespace dlock::redis
