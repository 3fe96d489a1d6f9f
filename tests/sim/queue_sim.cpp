// The queue of a lock under random schedules: 100,000 seeds.
//
// World.   A server keeps the requests in their order and tells watchers what has changed, as
//   ZooKeeper does; or it keeps leases and tells nobody when one expires, as a database does, so
//   that a waiter looks again at Turn::look.
// Clients. Each joins the queue, lists it, asks turn_of(), and acts on the answer some steps later:
//   others arrive, are granted the lock, release it and die in between.  A client that is to wait
//   sets its watch and looks again if the list has changed for it meanwhile.
// Checked. At each grant: nothing before it excludes it, and no holder does (safety, and a writer
// is
//   not passed by readers).  At each answer: nobody waits for a request behind its own.  Whenever
//   nothing is under way: every client that could hold the lock does (liveness).  At the end:
//   each client has held the lock, was refused, or has died.
// Mutants. Wrong rules, some of them found in other lock programs.  Each must be caught.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/queue.hpp"

namespace dlock {
namespace {

using Rule = std::function<Turn(std::span<const Queued>, std::size_t)>;

constexpr Millis kLease{10};
constexpr int kArrivals = 12;
constexpr int kMostSteps = 5'000;

struct Client {
  enum class State { looks, sets_watch, sleeps, announces, holds, gone };
  int id = 0;
  Claim claim;
  State state = State::looks;
  Turn turn = {};
  int watched = 0;  // a client that `turn` is about, where it is about one
  bool is_dead = false;
};

class QueueWorld {
 public:
  QueueWorld(std::uint64_t seed, Rule rule) : random_(seed), rule_(std::move(rule)) {
    tells_ends_ = one_in(2);
    mixed_ = one_in(8);
    deaths_ = !one_in(4);
    kind_ = pick(3);
    slots_ = 1 + pick(3);
  }

  // "" if all is well.
  std::string run() {
    for (int step = 0; step < kMostSteps && wrong_.empty(); ++step) {
      if (arrivals_ == kArrivals && nobody_is_left()) return wrong_;
      act();
      if (is_quiet()) check_liveness();
    }
    return wrong_.empty() ? "a client is never done" : wrong_;
  }

 private:
  using State = Client::State;
  struct Member {
    int id;
    Queued queued;
  };

  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  bool one_in(unsigned count) { return pick(count) == 0; }
  Client& client(int id) { return clients_[static_cast<std::size_t>(id)]; }

  Claim some_claim() {
    if (mixed_ && one_in(6)) return {Mode::slots, 1 + pick(3)};
    if (kind_ == 2) return {Mode::slots, slots_};
    return {kind_ == 1 && !one_in(3) ? Mode::shared : Mode::exclusive};
  }

  std::size_t place_of(int id) const {
    return static_cast<std::size_t>(
        std::find_if(queue_.begin(), queue_.end(), [&](const Member& m) { return m.id == id; }) -
        queue_.begin());
  }

  Turn turn_of_client(const Client& client) const {
    std::vector<Queued> list;
    for (const Member& member : queue_) list.push_back(member.queued);
    return rule_(list, place_of(client.id));
  }

  // Independent of core/queue: whether nothing before this place keeps it from the lock.
  bool can_hold(std::size_t place) const {
    const Claim own = queue_[place].queued.claim;
    if (own.mode == Mode::exclusive) return place == 0;
    if (own.mode == Mode::slots && place >= own.slots) return false;
    return std::all_of(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(place),
                       [&](const Member& member) { return member.queued.claim == own; });
  }

  void act() {
    if (arrivals_ < kArrivals && one_in(4)) return arrive();
    if (one_in(6)) return pass_time();
    if (clients_.empty()) return;
    Client& chosen = clients_[pick(static_cast<unsigned>(clients_.size()))];
    if (chosen.is_dead || chosen.state == State::gone) return;
    if (deaths_ && one_in(40)) {
      chosen.is_dead = true;
      return;
    }
    switch (chosen.state) {
      case State::looks:
        return look(chosen);
      case State::sets_watch:
        return set_watch(chosen);
      case State::announces:
        chosen.state = State::holds;
        if (chosen.claim.mode == Mode::slots) tell_watchers(chosen.id, false);
        return;
      case State::holds:
        if (one_in(3)) leave(chosen);
        return;
      case State::sleeps:
      case State::gone:
        return;
    }
  }

  void arrive() {
    const Client newcomer{.id = arrivals_++, .claim = some_claim()};
    clients_.push_back(newcomer);
    queue_.push_back({newcomer.id, {newcomer.claim, now_ + kLease}});
  }

  void look(Client& client) {
    if (!tells_ends_) remove_expired();
    const std::size_t own = place_of(client.id);
    client.turn = turn_of_client(client);
    switch (client.turn.kind) {
      case Turn::Kind::granted:
        if (!can_hold(own)) wrong_ = "a grant that something before it excludes";
        client.state = State::announces;
        return check_holders();
      case Turn::Kind::refused:
        return leave(client);
      case Turn::Kind::wait_for_one:
        if (client.turn.index >= own) {
          wrong_ = "a waiter waits for itself, or for one behind it";
          return;
        }
        client.watched = queue_[client.turn.index].id;
        break;
      case Turn::Kind::wait_for_any:
        break;
    }
    client.state = State::sets_watch;
  }

  // As the ZooKeeper backend does it: one watch; a waiter for a slot compares the list, too.
  void set_watch(Client& client) {
    const bool any = client.turn.kind == Turn::Kind::wait_for_any;
    bool still = any || place_of(client.watched) < queue_.size();
    if (still && client.claim.mode == Mode::slots) {
      const Turn now = turn_of_client(client);
      still = now.kind == client.turn.kind && (any || queue_[now.index].id == client.watched);
    }
    if (!tells_ends_ && client.turn.look <= now_) still = false;
    client.state = still ? State::sleeps : State::looks;
  }

  void leave(Client& client) {
    client.state = State::gone;
    remove(client.id);
  }

  void remove(int id) {
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(place_of(id)));
    tell_watchers(id, true);
  }

  void tell_watchers(int id, bool has_gone) {
    for (Client& client : clients_) {
      if (client.state != State::sleeps) continue;
      const bool any = client.turn.kind == Turn::Kind::wait_for_any;
      if (any ? has_gone : client.watched == id) client.state = State::looks;
    }
  }

  // Living clients renew their leases, and those that waited for an end look again.
  void pass_time() {
    now_ += Millis{1 + pick(4)};
    for (Member& member : queue_) {
      if (!client(member.id).is_dead) member.queued.ends = now_ + kLease;
    }
    if (tells_ends_) return remove_expired();
    for (Client& client : clients_) {
      if (client.state == State::sleeps && client.turn.look <= now_) client.state = State::looks;
    }
  }

  void remove_expired() {
    for (std::size_t i = 0; i < queue_.size();) {
      const Member member = queue_[i];
      if (member.queued.ends > now_) {
        ++i;
      } else if (tells_ends_) {
        remove(member.id);
      } else {
        queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  void check_holders() {
    std::vector<Claim> held;
    for (const Member& member : queue_) {
      const State state = client(member.id).state;
      if (state == State::announces || state == State::holds) held.push_back(member.queued.claim);
    }
    if (held.size() < 2) return;
    const Claim first = held.front();
    const std::size_t most = first.mode == Mode::exclusive ? 1
                             : first.mode == Mode::shared  ? held.size()
                                                           : first.slots;
    const bool same = std::all_of(held.begin(), held.end(), [&](Claim c) { return c == first; });
    if (!same || held.size() > most) wrong_ = "holders that exclude each other";
  }

  bool nobody_is_left() const {
    return std::all_of(clients_.begin(), clients_.end(), [](const Client& client) {
      return client.is_dead || client.state == State::gone;
    });
  }

  bool is_quiet() const {
    return std::none_of(clients_.begin(), clients_.end(), [](const Client& client) {
      if (client.is_dead) return false;
      return client.state == State::looks || client.state == State::sets_watch ||
             client.state == State::announces;
    });
  }

  // A dead client that is still in the queue may have to be waited for until it expires.
  void check_liveness() {
    for (std::size_t place = 0; place < queue_.size(); ++place) {
      const Client& waiter = client(queue_[place].id);
      if (waiter.is_dead) return;
      if (waiter.state == State::sleeps && can_hold(place)) {
        wrong_ = "a waiter sleeps although it could hold the lock";
      }
    }
  }

  std::mt19937_64 random_;
  const Rule rule_;
  bool tells_ends_ = false;  // the server tells watchers when a member has expired
  bool mixed_ = false;       // some requests are refused
  bool deaths_ = false;
  unsigned kind_ = 0;  // 0: writers; 1: readers, too; 2: slots
  unsigned slots_ = 1;
  Deadline now_{};
  std::vector<Member> queue_;
  std::vector<Client> clients_;
  int arrivals_ = 0;
  std::string wrong_;
};

std::string first_wrong(const Rule& rule, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string wrong = QueueWorld(seed, rule).run();
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return {};
}

TEST(QueueSim, NoTwoExcludeEachOtherAndNobodyWaitsInVain) {
  EXPECT_EQ(first_wrong(turn_of, 100'000), "");
}

struct WrongRule {
  const char* name;
  Rule rule;
};

const std::vector<WrongRule>& wrong_rules() {
  using Kind = Turn::Kind;
  static const std::vector<WrongRule> all{
      {"readers pass a writer that waits",
       [](std::span<const Queued> queue, std::size_t own) {
         const bool both =
             queue[own].claim.mode == Mode::shared && queue[0].claim == queue[own].claim;
         return both ? Turn{} : turn_of(queue, own);
       }},
      {"one holder too many",
       [](std::span<const Queued> queue, std::size_t own) {
         return own == count_holders(queue) && modes_mix(queue[0].claim, queue[own].claim)
                    ? Turn{}
                    : turn_of(queue, own);
       }},
      {"any claim goes with any",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         if (turn.kind == Kind::refused) turn = {};
         return turn;
       }},
      {"a reader waits for the request before it, which may be a reader",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         if (turn.kind == Kind::wait_for_one) turn.index = own - 1;
         return turn;
       }},
      {"a waiter waits for the one behind it",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         if (turn.kind == Kind::wait_for_one) turn.index = own + 1;
         return turn;
       }},
      {"the first waiter for a slot waits for the oldest holder",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         if (turn.kind == Kind::wait_for_any) turn = {Kind::wait_for_one, 0, queue[0].ends};
         return turn;
       }},
      {"a waiter for a slot waits for the one that is N before it, as in Curator's children[i-max]",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         const Claim claim = queue[own].claim;
         if (turn.kind == Kind::granted || turn.kind == Kind::refused) return turn;
         if (claim.mode != Mode::slots || own < claim.slots) return turn;
         return Turn{Kind::wait_for_one, own - claim.slots, turn.look};
       }},
      {"nobody looks when a lease ends",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         turn.look = kNever;
         return turn;
       }},
      {"for a slot, only the end of the oldest lease is looked at",
       [](std::span<const Queued> queue, std::size_t own) {
         Turn turn = turn_of(queue, own);
         if (turn.kind == Kind::wait_for_any) turn.look = kNever;
         return turn;
       }},
  };
  return all;
}

TEST(QueueSim, EveryMutantIsCaught) {
  for (const WrongRule& wrong_rule : wrong_rules()) {
    const std::string wrong = first_wrong(wrong_rule.rule, 20'000);
    EXPECT_NE(wrong, "") << wrong_rule.name;
    RecordProperty(wrong_rule.name, wrong);
  }
}

}  // namespace
}  // namespace dlock
