// The simulated clients of a lock, its servers, the network between them, and the faults.
#pragma once

#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/acquire_protocol.hpp"
#include "backends/redis/quorum.hpp"
#include "engine/lease_schedule.hpp"
#include "local_clock.hpp"
#include "protocol_setting.hpp"
#include "sim_server.hpp"

namespace dlock::sim::protocol {

using redis::AcquireProtocol;
using redis::Reply;
using redis::ScriptCall;
using redis::Votes;
using Order = AcquireProtocol::Order;

constexpr Millis kAnswerWithin{200};
constexpr Millis kWindDown{40'000};  // before the end nobody asks for the lock any more

enum class Doing : std::uint8_t { nothing, acquiring, holding };

struct Client {
  unsigned number = 0;
  LocalClock clock;
  Nanos stopped_until{0};  // the supervisor
  Nanos thawed{0};
  unsigned life = 0;  // counts what it has begun: events of an earlier one are void
  Doing doing = Doing::nothing;

  // One acquire().
  redis::WaiterId waiter;
  Mode mode = Mode::exclusive;
  bool waits = true;
  Deadline came;
  Nanos came_at{0};  // the same, in true time
  bool was_refused = false;
  std::optional<AcquireProtocol> protocol;
  std::set<unsigned> subscribed;
  std::vector<unsigned> unanswered;  // of each server
  std::set<unsigned> rounds_asked;
  std::uint64_t alarm = 0;

  // One hold.
  unsigned round = 0;
  std::uint64_t fence = 0;
  unsigned slot = 0;
  std::optional<LeaseSchedule> schedule;
  Deadline valid_until;
  std::uint64_t lease = 0;  // counts the ends that it has had: timers for another one are void
  std::uint64_t renewals = 0;
  Deadline asked;
  std::optional<Votes> renewal;
  std::set<unsigned> forgetful;  // servers that did not have it when it was renewed
  bool lost = false;
  bool is_broken = false;
  bool hands_over = false;  // another process releases it
  bool job_runs = false;
  Nanos job_obeys_in{0};  // how long the job takes over a SIGTERM
};

class World {
 public:
  World(const Setting& setting, std::uint64_t seed, const Watch& watch);
  Verdict run();

 private:
  using Action = std::function<void()>;

  bool breaks(Rule rule) const { return setting_.broken_rule == rule; }
  bool calm() const { return now_ >= setting_.calm_from; }
  bool single() const { return setting_.servers == 1; }
  unsigned needed() const { return redis::quorum(setting_.servers); }
  /// So many hold the lock where it has no room for another; of slots on several servers a number
  /// may be missing.
  std::int64_t most_holders() const {
    return setting_.use == Use::slots && single() ? setting_.slots : 1;
  }
  Margins margins() const { return {setting_.ttl / 4}; }

  // --- chance
  double real(double low, double high) {
    return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(random_);
  }
  bool chance(double p) { return p > 0 && real(0, 1) < p; }
  Nanos millis(double low, double high) {
    return Nanos(static_cast<Nanos::rep>(real(low, high) * 1e6));
  }
  Nanos ttls(double low, double high) {
    const auto ttl = static_cast<double>(setting_.ttl.count());
    return millis(low * ttl, high * ttl);
  }
  unsigned below(unsigned limit) {
    return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_);
  }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + below(static_cast<unsigned>(all.size())));
  }
  double clock_rate();
  Nanos delay();
  std::string new_id();

  // --- events
  void at(Nanos when, Action what) { queue_.push({when, ++sequence_, std::move(what)}); }
  void after_delay(Nanos pause, Action what) { at(now_ + pause, std::move(what)); }
  /// When the client's clock shows `due`, unless it does something else by then.
  void when(Client& client, Deadline due, Action what);
  void as(Client& client, unsigned life, Action what);
  Deadline local(const Client& client) const { return client.clock.at(now_); }

  // --- the network
  bool is_lost(const Client& client, unsigned server);
  void request(Client& client, unsigned server, std::function<Reply(SimServer&)> what,
               std::function<void(const Reply&)> on_reply, bool outlives = false);
  void serve(Client& client, unsigned server, const std::function<Reply(SimServer&)>& what,
             const std::function<void(const Reply&)>& on_reply, unsigned life, bool outlives);
  Reply run(SimServer& server, const ScriptCall& call);
  void deliver_messages(unsigned server);

  // --- a client that acquires
  void think(Client& client);
  void want(Client& client);
  void become_waiter(Client& client);
  void pump(Client& client);
  void send(Client& client, Order order);
  void send_ask(Client& client, const Order& order);
  std::string record(const Client& client, unsigned round, unsigned server, std::uint64_t token,
                     unsigned number) const;
  void leave(Client& client);
  void leave_at(Client& client, unsigned server, const redis::WaiterId& waiter, unsigned round,
                bool in_doubt);
  void die(Client& client);
  void stop_listening(Client& client);

  // --- a client that holds
  void hold(Client& client);
  void start_job(Client& client);
  void lease_moved(Client& client);
  void launcher_kills(Client& client, Deadline when);
  void renew(Client& client);
  void judge_renewal(Client& client, unsigned server, const redis::RenewAnswer& answer);
  void give_again(Client& client, unsigned server);
  void lose(Client& client);
  void end_job(Client& client);
  void release(Client& client);

  // --- faults
  void fail_next(void (World::*fault)());
  void stop_server();
  void stop(Client& client, Millis length);
  void stop_client();
  void kill_client();
  void cut_link();
  void crash_server();
  void clock_jumps();
  void force_release();
  void check_that_it_ends(const Client& client, Nanos broken_in);
  void delete_by_hand();
  void stop_crowd();

  // --- checks
  bool claims(const Client& client) const {
    return client.doing == Doing::holding && local(client) < client.valid_until;
  }
  void check_overlap(Broken kind, const std::function<bool(const Client&)>& has);
  void check_fence(const Client& client);
  void check_order(const Client& client);
  void watch_the_lock();
  bool has_room(SimServer& server);
  bool is_alive(const Client& client) const;
  void broken(Broken kind, const std::string& how);

  template <class... Parts>
  void say(const Parts&... parts) {
    if (!watch_.trace) return;
    std::cerr << static_cast<double>(now_.count()) / 1e9 << "  ";
    (std::cerr << ... << parts) << '\n';
  }

  struct Event {
    Nanos when;
    std::uint64_t sequence;
    Action what;
    bool operator>(const Event& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  std::mt19937_64 random_;
  const Setting setting_;
  const Watch watch_;
  const redis::Names names_ = redis::names_of("", "job");
  Verdict verdict_;

  Nanos now_{0};
  std::uint64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Client> clients_;
  std::vector<SimServer> servers_;
  std::vector<std::vector<Nanos>> cut_until_;  // by client and server
  std::uint64_t ids_ = 0;
  std::map<std::string, unsigned> client_of_;  // by waiter
  std::set<std::string> gone_;                 // waiters that have left in order

  // Of this run.
  double lost_ = 0;
  double late_ = 0;
  double doubled_ = 0;
  std::optional<Nanos> free_since_;

  std::set<std::uint64_t> fences_;
  std::vector<std::pair<Nanos, std::uint64_t>> largest_fences_;  // by the time of the grant
};

}  // namespace dlock::sim::protocol
