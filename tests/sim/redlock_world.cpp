// World.   True time runs in nanoseconds; one queue of events, ordered by it.  Every process has a
//   clock that runs a little fast or slow.  Messages are lost, doubled, overtaken by later ones, or
//   land after the client gave them up; links are cut; servers stop, crash, and come back with
//   their data or without; supervisors are stopped, their fronts and jobs are not.  How often each
//   of this happens is drawn for each run.
// Client.  What the redlock driver and the engine do with an Attempt, a Tally and a LeaseSchedule:
//   ask all servers, write the token, undo all of a failure, wait a random time; renew; SIGTERM at
//   give_up_at, SIGKILL at kill_at, or by the front, release when the job has ended.
// Checked. At each event that could break a promise, against what all others do at that instant.
#include "redlock_world.hpp"

#include <algorithm>
#include <deque>
#include <iostream>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <vector>

#include "backends/redis/attempt.hpp"
#include "engine/lease_schedule.hpp"
#include "redlock_node.hpp"

namespace dlock::sim {
namespace {

using redis::Attempt;
using redis::Tally;
using Answer = redis::Tally::Answer;

constexpr Millis kTtl{10'000};
constexpr Margins kMargins{Millis{2'500}};  // kill_after as the engine chooses it for this ttl
constexpr std::size_t kMostLeftovers = 8;
constexpr double kMostMillisApart = 1e8;  // the clocks of servers
constexpr std::string_view kNumberIsTaken =
    "if expires and tonumber(expires) > now then return false end";
constexpr Millis kNodeTimeout = std::min(kTtl / 20, Millis{200});

struct Message {
  enum class Op : std::uint8_t { grant, write, renew, again, undo, release };
  Op op = Op::grant;
  unsigned client = 0;
  unsigned node = 0;
  Id id = 0;
  Mode mode = Mode::exclusive;
  std::uint64_t round = 0;  // of the client's requests: answers to another one are stale
  std::uint64_t token = 0;
  unsigned slot = 0;
  Millis rest{0};
  // The answer.
  bool yes = false;
  bool overtaken = false;
  bool number_is_taken = false;
  unsigned given = 0;
  std::string taken;
  std::uint64_t counter = 0;
  std::uint64_t clock_ms = 0;
};

enum class What : std::uint8_t {
  // What a supervisor does, which must wait while it is stopped.
  answer,
  wants,
  asked_enough,
  wrote_enough,
  undone_enough,
  tries_again,
  starts_job,
  renews,
  renewed_enough,
  gives_up,
  kills,
  sees_the_end,
  // What the others do.
  front_kills,
  job_ends,
  request,
  node_returns,
  // Faults, each of which brings on the next of its kind.
  client_stops,
  link_is_cut,
  node_stops,
  node_crashes,
  node_clock_jumps,
  client_clock_jumps,
};

bool is_of_supervisor(What what) { return what <= What::sees_the_end; }

struct Event {
  Nanos at;
  std::uint64_t sequence;
  What what;
  Deadline due;  // by the client's clock, which may have been set back in the meantime
  Message message;

  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : sequence > other.sequence;
  }
};

struct Server {
  Node node;
  LocalClock clock;
  bool down = false;
  Nanos stopped_until{0};
};

struct Client {
  LocalClock clock;
  Nanos stopped_until{0};  // the supervisor
  bool holding = false;
  bool served_in_calm = false;
  Nanos wanted_at{0};

  // One acquisition.
  Id id = 0;
  Mode mode = Mode::exclusive;
  unsigned needed = 0;
  unsigned head = 0;
  unsigned tries = 0;
  // What earlier ids may have left, to be undone again before the next attempt.
  struct Leftover {
    Id id;
    unsigned node;
  };
  std::deque<Leftover> leftovers;

  // One round of requests.
  std::uint64_t round = 0;
  bool rest_asked = false;  // all but the head, which is asked first after a failure
  Deadline asked;
  Nanos asked_at{0};  // the same, in true time
  Deadline ask_until;
  std::optional<Attempt> attempt;
  std::vector<Deadline> write_until;
  // With this id, and not answered: server and token.
  std::set<std::pair<unsigned, std::uint64_t>> outstanding_writes;
  std::set<unsigned> refused_by;
  std::optional<Tally> undone;
  std::optional<Tally> renewal;

  // One hold.
  std::optional<LeaseSchedule> schedule;
  Deadline valid_until;
  std::uint64_t fence = 0;
  unsigned slot = 0;
  std::uint64_t lease = 0;  // counts the ends that it has had: timers for another one are stale
  std::set<unsigned> forgetful;  // servers that did not have it when it was renewed
  bool lost = false;
  bool job_runs = false;
  Nanos job_obeys_in{0};  // how long the job takes over a SIGTERM
};

class World {
 public:
  World(const Setting& setting, std::uint64_t seed, const Watch& watch);
  Verdict run();

 private:
  bool mutant(Mutant which) const { return setting_.mutant == which; }
  bool calm() const { return now_ >= calm_from_; }

  // --- chance
  double real(double low, double high) {
    return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(random_);
  }
  bool chance(double p) { return p > 0 && real(0, 1) < p; }
  Nanos millis(double low, double high) {
    return Nanos(static_cast<Nanos::rep>(real(low, high) * 1e6));
  }
  Nanos ttls(double low, double high) {
    const auto ttl = static_cast<double>(kTtl.count());
    return millis(low * ttl, high * ttl);
  }
  unsigned below(unsigned limit) {
    return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_);
  }
  double clock_rate();
  Nanos delay();

  // --- events
  void push(Nanos at, What what, const Message& message = {}, Deadline due = Deadline::min()) {
    queue_.push({at, ++sequence_, what, due, message});
  }
  void arm(const Client& client, What what, Deadline due, std::uint64_t round = 0);
  void handle(Event& event);
  void on_timer(Client& client, What what, const Message& message);
  Client& client(const Message& message) { return clients_[message.client]; }
  unsigned number(const Client& client) const {
    return static_cast<unsigned>(&client - clients_.data());
  }
  Deadline local(const Client& client) const { return client.clock.at(now_); }
  Deadline local(const Server& server) const { return server.clock.at(now_); }

  // --- the network and the servers
  void send(const Client& client, Message::Op op, unsigned node, std::uint64_t token = 0,
            std::optional<Id> earlier_id = {});
  void send_all(const Client& client, Message::Op op);
  void deliver(What what, const Message& message);
  void serve(const Event& event);

  // --- a client
  void want(Client& client);
  void ask(Client& client);
  void ask_rest(Client& client);
  void on_answer(Client& client, const Message& answer);
  void advance(Client& client);
  static bool is_refused(const Client& client) {
    return client.attempt->grants().denied() || !client.rest_asked;
  }
  void write(Client& client);
  void undo(Client& client);
  void wait(Client& client);
  void hold(Client& client);
  void start_job(Client& client);
  void lease_moved(Client& client);
  void renew(Client& client);
  void judge_renewal(Client& client);
  void lose(Client& client);
  void kill(Client& client);
  void release(Client& client);
  void think(Client& client);

  // --- faults
  void cut_off(Client& client);
  void stop(Client& client, Nanos length);
  bool worst_moment() { return !calm() && chance(worst_moments_); }
  void fail_next(What fault);
  void fail(const Event& event);

  // --- checks
  bool claims(const Client& client) const {
    return client.holding && local(client) < client.valid_until;
  }
  template <class Has>
  void check_overlap(Broken kind, Has has);
  void check_claims() {
    check_overlap(Broken::claims, [this](const Client& each) { return claims(each); });
  }
  void check_fence(const Client& client);
  void broken(Broken kind, const std::string& how);

  template <class... Parts>
  void say(const Parts&... parts) {
    if (!watch_.trace) return;
    std::cerr << static_cast<double>(now_.count()) / 1e9 << "  ";
    (std::cerr << ... << parts) << '\n';
  }
  template <class... Parts>
  void say(const Client& client, const Parts&... parts) {
    if (watch_.trace) say("client ", number(client), ", id ", client.id, ": ", parts...);
  }

  std::mt19937_64 random_;
  const Setting setting_;
  const Watch watch_;
  const Nanos calm_from_;
  Verdict verdict_;

  Nanos now_{0};
  std::uint64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Client> clients_;
  std::vector<Server> servers_;
  std::vector<std::vector<Nanos>> cut_until_;  // by client and server
  std::vector<std::vector<Nanos>> last_request_;
  Id ids_ = 0;

  // Of this run.
  double lost_ = 0;
  double doubled_ = 0;
  double slow_ = 0;
  double worst_moments_ = 0;
  double long_jobs_ = 0;
  double patience_ = 1'500;             // ms, at most between two attempts
  std::map<What, double> fault_every_;  // ms, in the mean

  std::set<std::uint64_t> fences_;
  std::vector<std::pair<Nanos, std::uint64_t>> largest_fences_;  // by the time of the grant
};

// --------------------------------------------------------------------------------- chance, events

// What each does is found, or this says nothing.
std::vector<ScriptBug> bugs_of(Mutant mutant) {
  switch (mutant) {
    case Mutant::removes_without_comparing:
      return {{&redis::kRelease, "redis.pcall('GET', lock) == holder",
               "redis.call('TYPE', lock).ok == 'string'"}};
    case Mutant::renews_without_comparing:
      return {{&redis::kRenew, "redis.pcall('GET', lock) == id",
               "redis.call('TYPE', lock).ok == 'string'"}};
    case Mutant::fence_of_anybody_ties:
      return {{&redis::kFence, "or count == tonumber(token) and not is_written_in(stored)", ""}};
    case Mutant::again_whatever_is_there:
      return {{&redis::kAgain,
               "if not was_lost then return {0} end\n  if not redis.call('SET', lock, id, 'NX', "
               "'PX', rest)",
               "if not redis.call('SET', lock, id, 'PX', rest)"}};
    case Mutant::numbers_given_twice:
      return {{&redis::kAcquire, kNumberIsTaken, ""},
              {&redis::kFence, kNumberIsTaken, ""},
              {&redis::kRenew, kNumberIsTaken, ""},
              {&redis::kAgain, kNumberIsTaken, ""}};
    case Mutant::number_before_the_token:
      return {{&redis::kFence, "local count =",
               "if mode ~= 'x' and not take_number(number, now) then return {0, 'taken'} end\n"
               "local count ="}};
    default:
      return {};
  }
}

World::World(const Setting& setting, std::uint64_t seed, const Watch& watch)
    : random_(seed),
      setting_(setting),
      watch_(watch),
      calm_from_(setting.calm_from),
      clients_(setting.clients),
      cut_until_(setting.clients, std::vector<Nanos>(setting.nodes)),
      last_request_(cut_until_) {
  for (Client& each : clients_) {
    each.clock = {clock_rate(), millis(0, 1e9)};
    push(millis(0, calm() ? 1 : 5'000), What::wants, {.client = number(each)});
  }
  const bool counts_alone = setting.nodes == 1 || mutant(Mutant::fence_not_written);
  for (unsigned node = 0; node < setting.nodes; ++node) {
    servers_.push_back({.node = Node({.ttl = kTtl,
                                      .slots = setting.slots,
                                      .number = counts_alone ? std::nullopt : std::optional(node),
                                      .bugs = bugs_of(setting.mutant)}),
                        .clock = {clock_rate(), millis(0, kMostMillisApart)}});
  }
  for (unsigned node = 0; node < setting.dead; ++node) servers_[node].down = true;
  if (calm()) return;
  if (chance(0.7)) lost_ = real(0, 0.05);
  if (chance(0.7)) doubled_ = real(0, 0.05);
  if (chance(0.7)) slow_ = real(0, 3);
  if (chance(0.7)) worst_moments_ = real(0, 0.2);
  long_jobs_ = real(0, 1);
  patience_ = real(100, 1'500);
  for (const What fault : {What::client_stops, What::link_is_cut, What::node_stops}) {
    if (chance(0.7)) fault_every_[fault] = real(3'000, 60'000);
  }
  if (setting.crashes != Crashes::none) fault_every_[What::node_crashes] = real(5'000, 60'000);
  if (setting.node_clocks_jump) fault_every_[What::node_clock_jumps] = real(5'000, 60'000);
  if (mutant(Mutant::wall_clock)) fault_every_[What::client_clock_jumps] = real(5'000, 60'000);
  for (const auto& [fault, every] : fault_every_) fail_next(fault);
}

double World::clock_rate() {
  if (setting_.extreme_drift) return 1 + (chance(0.5) ? setting_.drift : -setting_.drift);
  return 1 + real(-setting_.drift, setting_.drift);
}

Nanos World::delay() {
  const double p = calm() ? 1 : real(0, 1);
  if (p < 0.01 * slow_) return ttls(0, 1.5);
  if (p < 0.07 * slow_) return millis(3, 300);
  return setting_.far_away ? millis(20, 95) : millis(0.1, 3);
}

void World::arm(const Client& client, What what, Deadline due, std::uint64_t round) {
  const Nanos at = std::max(now_, client.clock.true_time(due)) + millis(0, 5);
  push(at, what, {.client = number(client), .id = client.id, .round = round}, due);
}

Verdict World::run() {
  while (!verdict_.broken && !queue_.empty()) {
    Event event = queue_.top();
    queue_.pop();
    if (event.at >= setting_.length) break;
    now_ = event.at;
    handle(event);
  }
  now_ = setting_.length;
  if (!verdict_.broken && calm()) {
    for (const Client& each : clients_) {
      if (!each.served_in_calm) broken(Broken::starved, "client " + std::to_string(number(each)));
    }
  }
  return verdict_;
}

void World::handle(Event& event) {
  if (event.what == What::request) return serve(event);
  if (event.what >= What::node_returns) return fail(event);
  Client& whose = client(event.message);
  if (is_of_supervisor(event.what) && now_ < whose.stopped_until) {
    event.at = whose.stopped_until;
  } else if (local(whose) < event.due) {
    event.at = std::max(now_, whose.clock.true_time(event.due)) + millis(0, 5);
  } else if (event.what == What::answer) {
    return on_answer(whose, event.message);
  } else {
    return on_timer(whose, event.what, event.message);
  }
  event.sequence = ++sequence_;
  queue_.push(event);
}

void World::on_timer(Client& client, What what, const Message& message) {
  if (what == What::wants) return want(client);
  if (message.id != client.id) return;
  const bool its_round = message.round == client.round;
  const bool its_lease = client.holding && message.round == client.lease;
  switch (what) {
    case What::asked_enough:
      if (!its_round || !client.attempt || local(client) < client.ask_until) return;
      if (!client.rest_asked) return ask_rest(client);
      for (unsigned node = 0; node < setting_.nodes; ++node) {
        if (client.attempt->grants().at(node) == Answer::open) client.attempt->silent(node);
      }
      return advance(client);
    case What::wrote_enough:
      if (!its_round || !client.attempt) return;
      for (unsigned node = 0; node < setting_.nodes; ++node) {
        if (client.attempt->writes().at(node) != Answer::open) continue;
        if (client.write_until[node] > local(client)) continue;
        client.attempt->unwritten(node, client.attempt->token());
      }
      return advance(client);
    case What::undone_enough:
      if (its_round && client.undone) wait(client);
      return;
    case What::tries_again:
      return ask(client);
    case What::starts_job:
      return start_job(client);
    case What::renews:
      if (client.holding && !client.lost && !client.renewal) renew(client);
      return;
    case What::renewed_enough:
      if (!its_round || !client.renewal) return;
      for (unsigned node = 0; node < setting_.nodes; ++node) {
        if (client.renewal->at(node) == Answer::open) client.renewal->put(node, Answer::silent);
      }
      return judge_renewal(client);
    case What::gives_up:
      if (its_lease && !client.lost) lose(client);
      return;
    case What::kills:
      if (client.holding) kill(client);
      return;
    case What::front_kills:
      if (!its_lease || !client.job_runs) return;
      ++verdict_.front_kills;
      return kill(client);
    case What::job_ends:
      if (!client.job_runs) return;
      say(client, "the job has ended");
      client.job_runs = false;
      return arm(client, What::sees_the_end, local(client));
    case What::sees_the_end:
      if (client.holding) release(client);
      return think(client);
    default:
      return;
  }
}

// ------------------------------------------------------------------------ the network, the servers

void World::send(const Client& client, Message::Op op, unsigned node, std::uint64_t token,
                 std::optional<Id> earlier_id) {
  ++verdict_.requests;
  const Message message{.op = op,
                        .client = number(client),
                        .node = node,
                        .id = earlier_id.value_or(client.id),
                        .mode = client.mode,
                        .round = client.round,
                        .token = token,
                        .slot = client.attempt ? client.attempt->slot() : client.slot,
                        .rest = remaining(client.valid_until, local(client))};
  deliver(What::request, message);
  // As by a client that asks again over a new connection; no client does that with an undo.
  const bool may_double = op != Message::Op::undo || setting_.undo_doubled;
  if (may_double && !calm() && chance(doubled_)) deliver(What::request, message);
}

void World::send_all(const Client& client, Message::Op op) {
  for (unsigned node = 0; node < setting_.nodes; ++node) send(client, op, node);
}

void World::deliver(What what, const Message& message) {
  if (!calm() && chance(lost_)) return;
  Nanos leaves = now_;
  const Nanos cut = cut_until_[message.client][message.node];
  if (now_ < cut) {
    if (chance(0.5)) return;
    leaves = cut;
  }
  // An undo that comes late can hit a later grant.
  const bool late = what == What::request && message.op == Message::Op::undo && worst_moment();
  Nanos at = leaves + (late ? ttls(0, 1.5) : delay());
  if (calm() && what == What::request) {  // one connection
    Nanos& last = last_request_[message.client][message.node];
    at = last = std::max(at, last + Nanos{1});
  }
  push(at, what, message);
}

void World::serve(const Event& event) {
  Message message = event.message;
  Server& server = servers_[message.node];
  if (server.down) return;
  if (now_ < server.stopped_until) return push(server.stopped_until, What::request, message);
  Node& node = server.node;
  const Deadline now = local(server);
  const Client& its = client(message);
  const char* op = "";
  switch (message.op) {
    case Message::Op::grant: {
      op = "grant";
      Node::Granted granted = node.grant(message.id, message.mode, message.node == its.head, now);
      message.yes = granted.yes;
      message.given = granted.given;
      message.taken = std::move(granted.taken);
      message.counter = granted.counter;
      if (setting_.crashes == Crashes::forget_for_a_ttl && setting_.tokens_know_the_time) {
        message.clock_ms = static_cast<std::uint64_t>((Node::kBeginning + now_) / Millis{1});
      }
      break;
    }
    case Message::Op::write: {
      op = "write";
      const Node::Written written =
          node.write(message.id, message.mode, message.token, message.slot, now);
      message.yes = written.yes;
      message.overtaken = written.overtaken;
      message.number_is_taken = written.taken;
      message.counter = written.counter;
      break;
    }
    case Message::Op::renew: {
      op = "renew";
      if (mutant(Mutant::renewal_without_the_number)) message.slot = 0;
      const Node::Renewed renewed =
          node.renew(message.id, message.mode, message.token, message.slot, now);
      message.yes = renewed.yes;
      message.number_is_taken = renewed.taken;
      if (message.yes && message.slot != 0 && node.number_of(message.id) != message.slot) {
        broken(Broken::wrong_number, op);
      }
      break;
    }
    case Message::Op::again:
      op = "again";
      message.yes =
          node.give_again(message.id, message.mode, message.token, message.slot, message.rest, now);
      if (message.yes) ++verdict_.agains;
      break;
    case Message::Op::undo:
      op = "undo";
      message.yes = node.remove(message.id, message.mode, now);
      break;
    case Message::Op::release:
      op = "release";
      message.yes = node.remove(message.id, message.mode, now);
      break;
  }
  say("node ", message.node, ": ", op, " for id ", message.id, " of client ", number(its), ": ",
      message.yes ? "yes" : "no");
  if (node.changed_foreign()) broken(Broken::foreign_key, op);
  if (node.kept_too_long()) broken(Broken::kept_too_long, op);
  if (!node.has_no_two_numbers()) broken(Broken::wrong_number, op);
  deliver(What::answer, message);
  if (!calm() && chance(doubled_)) deliver(What::answer, message);
}

// ------------------------------------------------------------------------------------- a client

void World::think(Client& client) {
  client.attempt.reset();
  client.undone.reset();
  client.renewal.reset();
  push(now_ + (calm() ? millis(0, 1) : millis(0, 5'000)), What::wants, {.client = number(client)});
}

void World::want(Client& client) {
  if (client.served_in_calm) return;
  client.id = ++ids_;
  client.leftovers.clear();
  client.outstanding_writes.clear();
  client.tries = 0;
  client.wanted_at = now_;
  switch (setting_.use) {
    case Use::exclusive:
      client.mode = Mode::exclusive;
      break;
    case Use::shared_too:
      client.mode = chance(0.7) ? Mode::shared : Mode::exclusive;
      break;
    case Use::slots:
      client.mode = Mode::slots;
      break;
    case Use::all_modes:
      client.mode = static_cast<Mode>(below(3));
      break;
  }
  client.needed = redis::quorum(setting_.nodes);
  client.head = setting_.many_heads ? below(setting_.nodes) : 0;
  ask(client);
}

void World::ask(Client& client) {
  ++client.round;
  client.undone.reset();
  client.asked = local(client);
  client.asked_at = now_;
  client.attempt.emplace(setting_.nodes, client.needed, client.asked, kTtl,
                         client.mode == Mode::slots ? setting_.slots : 0);
  client.refused_by.clear();
  client.write_until.assign(setting_.nodes, kNever);
  for (const auto& left : client.leftovers) send(client, Message::Op::undo, left.node, 0, left.id);
  say(client, "asks");
  client.rest_asked = client.tries++ == 0;
  if (client.rest_asked) {
    for (unsigned node = 0; node < setting_.nodes; ++node) {
      send(client, Message::Op::grant, node);
    }
  } else {
    send(client, Message::Op::grant, client.head);
  }
  client.ask_until = after(client.asked, kNodeTimeout);
  arm(client, What::asked_enough, client.ask_until, client.round);
  if (worst_moment()) stop(client, ttls(0, 0.7));
}

void World::ask_rest(Client& client) {
  client.rest_asked = true;
  const unsigned head = client.head;
  if (client.attempt->grants().at(head) == Answer::open) client.attempt->silent(head);
  for (unsigned node = 0; node < setting_.nodes; ++node) {
    if (node == head) continue;
    send(client, Message::Op::grant, node);
  }
  client.ask_until = after(local(client), kNodeTimeout);
  arm(client, What::asked_enough, client.ask_until, client.round);
  advance(client);
}

void World::on_answer(Client& client, const Message& answer) {
  if (answer.op == Message::Op::write && answer.id == client.id) {
    client.outstanding_writes.erase({answer.node, answer.token});
  }
  if (answer.id != client.id || answer.round != client.round) return;
  const unsigned node = answer.node;
  switch (answer.op) {
    case Message::Op::grant:
      if (!client.attempt) return;
      if (!answer.yes) {
        client.attempt->refused(node);
        client.refused_by.insert(node);
        if (!client.rest_asked) return undo(client);
      } else {
        const bool counted = mutant(Mutant::fence_not_written);
        client.attempt->granted(node, answer.counter - (counted ? 1 : 0), answer.clock_ms,
                                {.given = answer.given, .taken = answer.taken});
      }
      if (!client.rest_asked) return ask_rest(client);
      return advance(client);
    case Message::Op::write:
      if (!client.attempt) return;
      if (answer.yes) {
        client.attempt->written(node, answer.token);
      } else if (answer.overtaken) {
        ++verdict_.overtaken;
        client.attempt->overtaken(answer.counter, random_());
      } else if (answer.number_is_taken) {
        ++verdict_.taken;
        client.attempt->taken(node);
      } else {
        client.attempt->vanished(node);
      }
      return advance(client);
    case Message::Op::undo:
      if (!client.undone) return;
      client.undone->put(node, Answer::yes);
      if (client.undone->reached()) wait(client);
      return;
    case Message::Op::renew:
      if (!client.renewal) return;
      client.renewal->put(node, answer.yes ? Answer::yes : Answer::no);
      if (!answer.yes && !answer.number_is_taken) client.forgetful.insert(node);
      return judge_renewal(client);
    case Message::Op::again:
    case Message::Op::release:
      return;
  }
}

void World::advance(Client& client) {
  switch (client.attempt->state(local(client))) {
    case Attempt::State::asking:
      return;
    case Attempt::State::writing:
      if (!mutant(Mutant::fence_not_written)) return write(client);
      return hold(client);
    case Attempt::State::held:
      return hold(client);
    case Attempt::State::failed:
      return undo(client);
  }
}

void World::write(Client& client) {
  const std::vector<unsigned> writers = client.attempt->writers();
  if (writers.empty()) return;
  const Deadline until = after(local(client), kNodeTimeout);
  for (const unsigned node : writers) {
    client.write_until[node] = until;
    client.outstanding_writes.emplace(node, client.attempt->token());
    send(client, Message::Op::write, node, client.attempt->token());
  }
  arm(client, What::wrote_enough, until, client.round);
  if (worst_moment()) stop(client, ttls(0, 0.7));
}

// On all servers that may have granted it, also those that gave no answer.
void World::undo(Client& client) {
  say(client, "undoes: ", client.attempt->grants().count(Answer::yes), " granted, ",
      client.attempt->grants().count(Answer::no), " refused");
  const bool numberless = client.attempt->lacks_number() || client.attempt->lost_race();
  if (!is_refused(client) && !numberless) ++verdict_.stuck;
  ++client.round;
  client.undone.emplace(setting_.nodes, setting_.nodes);
  for (unsigned node = 0; node < setting_.nodes; ++node) {
    const bool asked = client.rest_asked || node == client.head;
    if (asked && !client.refused_by.contains(node)) {
      send(client, Message::Op::undo, node);
    } else {
      client.undone->put(node, Answer::yes);
    }
  }
  if (client.undone->reached()) return wait(client);
  arm(client, What::undone_enough, after(local(client), kNodeTimeout), client.round);
}

void World::wait(Client& client) {
  // An undo that got no answer may still be under way, and undo a later grant of this id.  A token
  // may come to such a grant, too, with another number.
  const unsigned doubts = setting_.nodes - client.undone->count(Answer::yes);
  verdict_.doubts += doubts;
  const bool writes_in_doubt = !client.outstanding_writes.empty() &&
                               !mutant(Mutant::write_in_doubt_forgotten) &&
                               !mutant(Mutant::number_before_the_token);
  const bool is_spent = doubts > 0 || writes_in_doubt;
  if (is_spent && !mutant(Mutant::undo_in_doubt_forgotten)) {
    for (unsigned node = 0; node < setting_.nodes; ++node) {
      if (client.undone->at(node) != Answer::yes) client.leftovers.push_back({client.id, node});
    }
    while (client.leftovers.size() > kMostLeftovers) client.leftovers.pop_front();
    client.id = ++ids_;
    client.outstanding_writes.clear();
  }
  ++client.round;
  const bool refused = is_refused(client);
  client.undone.reset();
  if (chance(0.02) && !calm()) return think(client);  // it has waited for long enough
  const Nanos pause = refused ? millis(50, patience_) : millis(1, 20 * std::min(client.tries, 5U));
  arm(client, What::tries_again, local(client) + pause);
}

void World::hold(Client& client) {
  const Deadline now = local(client);
  Deadline valid_until = client.attempt->valid_until();
  if (mutant(Mutant::deadline_from_the_answer)) valid_until = trusted_until(now, kTtl);
  if (mutant(Mutant::no_drift_margin)) valid_until = after(client.asked, kTtl);
  if (now >= kMargins.term_at(valid_until)) return undo(client);
  client.fence = client.attempt->token();
  client.slot = client.attempt->slot();
  say(client, "holds, fence ", client.fence, ", slot ", client.slot);
  ++verdict_.grants;
  ++client.round;
  client.attempt.reset();
  client.holding = true;
  client.forgetful.clear();
  client.lost = false;
  client.job_runs = false;
  client.valid_until = valid_until;
  client.schedule.emplace(valid_until, kTtl, kMargins, random_());
  if (calm() && client.wanted_at >= calm_from_) {
    client.served_in_calm = true;
    verdict_.longest_wait = std::max(verdict_.longest_wait, now_ - client.wanted_at);
  }
  check_claims();
  check_fence(client);
  lease_moved(client);
  if (worst_moment()) cut_off(client);
  arm(client, What::starts_job, now);
  arm(client, What::renews, client.schedule->next_attempt());
}

void World::lease_moved(Client& client) {
  ++client.lease;
  if (mutant(Mutant::late_renewal_accepted)) return;  // nobody looks whether it has come
  arm(client, What::gives_up, client.schedule->give_up_at(), client.lease);
  if (mutant(Mutant::no_front)) return;
  arm(client, What::front_kills, kMargins.front_kills_at(client.valid_until), client.lease);
}

void World::start_job(Client& client) {
  if (!client.holding) return;
  if (client.lost || local(client) >= client.schedule->give_up_at()) {
    release(client);
    return think(client);
  }
  client.job_runs = true;
  client.job_obeys_in = chance(0.3) ? millis(0, 100) : ttls(100, 100);
  check_overlap(Broken::jobs, [](const Client& each) { return each.job_runs; });
  Nanos lasts = chance(long_jobs_) ? millis(1'000, 30'000) : millis(0, 1'000);
  if (calm()) lasts = millis(0, 1'000);
  push(now_ + lasts, What::job_ends, {.client = number(client), .id = client.id});
}

void World::renew(Client& client) {
  ++client.round;
  client.asked = local(client);
  client.renewal.emplace(setting_.nodes, mutant(Mutant::renewal_by_one_node) ? 1 : client.needed);
  for (unsigned node = 0; node < setting_.nodes; ++node) {
    send(client, Message::Op::renew, node, client.fence);
  }
  Deadline until =
      std::min(after(client.asked, kNodeTimeout), client.schedule->attempt_until(client.asked));
  if (mutant(Mutant::late_renewal_accepted)) until = after(client.asked, 2 * kTtl);
  arm(client, What::renewed_enough, until, client.round);
  if (worst_moment()) stop(client, ttls(0, 0.7));
}

void World::judge_renewal(Client& client) {
  const Tally& renewal = *client.renewal;
  const Deadline now = local(client);
  if (renewal.reached()) {
    client.renewal.reset();
    Deadline valid_until = trusted_until(client.asked, kTtl);
    if (mutant(Mutant::renewal_deadline_from_the_answer)) {
      valid_until = trusted_until(now, kTtl);
    }
    if (mutant(Mutant::no_drift_margin)) valid_until = after(client.asked, kTtl);
    if (mutant(Mutant::late_renewal_accepted)) {
      client.schedule.emplace(valid_until, kTtl, kMargins, random_());
    } else if (!client.schedule->renewed(client.asked, now, valid_until)) {
      return lose(client);
    }
    say(client, "has renewed");
    ++verdict_.renewals;
    client.valid_until = valid_until;
    // Also those whose answer to an earlier renewal came too late to count.
    for (const unsigned node : std::exchange(client.forgetful, {})) {
      send(client, Message::Op::again, node, client.fence);
    }
    check_claims();
    lease_moved(client);
    if (worst_moment()) cut_off(client);
  } else if (renewal.denied()) {
    client.renewal.reset();
    if (claims(client)) broken(Broken::lost_too_soon, "client " + std::to_string(number(client)));
    return lose(client);
  } else if (renewal.out_of_reach()) {
    client.renewal.reset();
    client.schedule->failed(now);
  } else {
    return;
  }
  arm(client, What::renews, client.schedule->next_attempt());
}

void World::lose(Client& client) {
  say(client, "has lost it");
  ++verdict_.losses;
  client.lost = true;
  client.renewal.reset();
  if (!client.job_runs) return;  // it will not start, or has ended: the supervisor is about to see
  if (mutant(Mutant::released_before_the_end)) release(client);
  if (mutant(Mutant::job_not_killed)) return;
  push(now_ + client.job_obeys_in, What::job_ends, {.client = number(client), .id = client.id});
  const Deadline kill_at = kMargins.kill_at(client.valid_until);
  arm(client, What::kills, std::min(kill_at, after(local(client), kMargins.kill_after)));
}

void World::kill(Client& client) {
  if (!client.job_runs || mutant(Mutant::job_not_killed)) return;
  push(now_ + millis(0, 5), What::job_ends, {.client = number(client), .id = client.id});
}

void World::release(Client& client) {
  if (client.job_runs) {
    broken(Broken::early_release, "client " + std::to_string(number(client)));
  }
  ++client.round;
  client.holding = false;
  const bool dies = !calm() && chance(0.03);  // without a word, as when the machine does
  say(client, dies ? "dies" : "releases");
  if (!dies) send_all(client, Message::Op::release);
}

// --------------------------------------------------------------------------------------- faults

void World::fail_next(What fault) {
  const double pause = -std::log(1 - real(0, 1)) * fault_every_[fault];
  const Nanos at = now_ + Nanos(static_cast<Nanos::rep>(pause * 1e6));
  if (at < calm_from_) push(at, fault);
}

void World::cut_off(Client& client) {
  const Nanos end = std::min(now_ + ttls(0, 1.5), calm_from_);
  const bool from_all = chance(0.5);
  for (Nanos& until : cut_until_[number(client)]) {
    if (from_all || chance(0.5)) until = std::max(until, end);
  }
  say(client, "is cut off");
}

void World::stop(Client& client, Nanos length) {
  client.stopped_until = std::max(client.stopped_until, std::min(now_ + length, calm_from_));
  say(client, "is stopped");
}

void World::fail(const Event& event) {
  const auto until = [this](Nanos length) { return std::min(now_ + length, calm_from_); };
  const auto pause = [this] { return chance(0.5) ? millis(1, 500) : ttls(0, 1.5); };
  const unsigned node = below(setting_.nodes);
  const unsigned client = below(setting_.clients);
  switch (event.what) {
    case What::node_returns:
      servers_[event.message.node].down = false;
      return;
    case What::client_stops:
      stop(clients_[client], pause());
      break;
    case What::link_is_cut: {
      const Nanos end = until(ttls(0, 1.5));
      const unsigned how = below(4);
      for (unsigned c = 0; c < setting_.clients; ++c) {
        for (unsigned n = 0; n < setting_.nodes; ++n) {
          const bool cut = (how == 0 || c == client) && (how == 1 || n == node);
          if (cut) cut_until_[c][n] = std::max(cut_until_[c][n], end);
        }
      }
      say("client ", client, ", node ", node, ": cut, in way ", how);
      break;
    }
    case What::node_stops:
      servers_[node].stopped_until = std::max(servers_[node].stopped_until, until(pause()));
      say("node ", node, " is stopped");
      break;
    case What::node_crashes: {
      if (servers_[node].down) break;
      servers_[node].down = true;
      const bool keeps = setting_.crashes == Crashes::keep_data;
      Nanos away = chance(0.5) ? millis(1, 200) : ttls(0, 2);
      // Longer than anybody may still trust it: its own clock and the client's differ.
      if (setting_.crashes == Crashes::forget_for_a_ttl) away = ttls(1 + 2 * setting_.drift, 2);
      if (setting_.crashes == Crashes::forget_at_once) away = millis(1, 200);
      if (!keeps) servers_[node].node.forget();
      say("node ", node, " crashes");
      push(now_ + away, What::node_returns, {.node = node});
      break;
    }
    case What::node_clock_jumps:
      servers_[node].clock.offset += millis(-30'000, 30'000);
      say("node ", node, ": its clock jumps");
      break;
    case What::client_clock_jumps:
      clients_[client].clock.offset += millis(-30'000, 30'000);
      say("client ", client, ": its clock jumps");
      break;
    default:
      break;
  }
  fail_next(event.what);
}

// --------------------------------------------------------------------------------------- checks

void World::broken(Broken kind, const std::string& how) {
  if (verdict_.broken) return;
  if (watch_.only && kind != *watch_.only) return;
  const bool of_fences = kind == Broken::equal_fences || kind == Broken::falling_fence;
  const bool of_claims = kind == Broken::claims || kind == Broken::lost_too_soon;
  if ((of_fences && !watch_.fences) || (of_claims && !watch_.claims)) return;
  // Then it is true.
  const bool forgets = setting_.crashes >= Crashes::forget_for_a_ttl;
  if (kind == Broken::lost_too_soon && forgets) return;
  verdict_.broken = kind;
  verdict_.how = std::string(name_of(kind)) + " at " +
                 std::to_string(static_cast<double>(now_.count()) / 1e9) + " s: " + how;
  say(verdict_.how);
}

template <class Has>
void World::check_overlap(Broken kind, Has has) {
  std::string who;
  unsigned count = 0;
  std::optional<Mode> mode;
  bool mixed = false;
  std::set<unsigned> numbers;
  for (const Client& each : clients_) {
    if (!has(each)) continue;
    ++count;
    mixed = mixed || (mode && *mode != each.mode);
    mode = each.mode;
    if (mode == Mode::slots) numbers.insert(each.slot);
  }
  if (count < 2) return;
  const unsigned most = mode == Mode::shared ? count : mode == Mode::slots ? setting_.slots : 1;
  const bool distinct = mode != Mode::slots || numbers.size() == count;
  if (!mixed && count <= most && distinct) return;
  for (const Client& each : clients_) {
    if (has(each)) who += " id " + std::to_string(each.id) + ", " + std::to_string(number(each));
  }
  broken(kind, who);
}

void World::check_fence(const Client& client) {
  if (!fences_.insert(client.fence).second) {
    broken(Broken::equal_fences, std::to_string(client.fence));
  }
  // The largest of those that were granted before this one was asked for.
  const auto later =
      std::lower_bound(largest_fences_.begin(), largest_fences_.end(), client.asked_at,
                       [](const auto& grant, Nanos asked_at) { return grant.first < asked_at; });
  if (later != largest_fences_.begin() && std::prev(later)->second > client.fence) {
    broken(Broken::falling_fence,
           std::to_string(client.fence) + " after " + std::to_string(std::prev(later)->second));
  }
  const std::uint64_t before = largest_fences_.empty() ? 0 : largest_fences_.back().second;
  largest_fences_.emplace_back(now_, std::max(before, client.fence));
}

}  // namespace

const char* name_of(Broken broken) {
  switch (broken) {
    case Broken::claims:
      return "two leases overlap";
    case Broken::jobs:
      return "two jobs overlap";
    case Broken::equal_fences:
      return "two equal fences";
    case Broken::falling_fence:
      return "a fence that falls";
    case Broken::lost_too_soon:
      return "told to be lost while it was good";
    case Broken::early_release:
      return "released before the job had ended";
    case Broken::foreign_key:
      return "another's grant was changed";
    case Broken::kept_too_long:
      return "kept for longer than a ttl";
    case Broken::wrong_number:
      return "a wrong number";
    case Broken::starved:
      return "not served in time";
  }
  return "";
}

Verdict simulate(const Setting& setting, std::uint64_t seed, const Watch& watch) {
  return World(setting, seed, watch).run();
}

}  // namespace dlock::sim
