// Chance, the network, the faults, and the order of events.  What a client does is in
// protocol_client.cpp, what is checked in protocol_checks.cpp.
#include "protocol_world.hpp"

#include <algorithm>

namespace dlock::sim::protocol {

// --------------------------------------------------------------------------------- chance, events

World::World(const Setting& setting, std::uint64_t seed, const Watch& watch)
    : random_(seed),
      setting_(setting),
      watch_(watch),
      clients_(setting.clients),
      cut_until_(setting.clients, std::vector<Nanos>(setting.servers)) {
  // A server that has lost its counter goes by its clock.
  const double apart = setting.crashes >= Crashes::forget_for_a_ttl ? 5'000 : 1e8;
  for (unsigned server = 0; server < setting.servers; ++server) {
    servers_.emplace_back(names_, setting.ttl, LocalClock{clock_rate(), millis(0, apart)},
                          setting.bugs);
  }
  for (unsigned server = 0; server < setting.dead; ++server) servers_[server].down = true;
  for (Client& client : clients_) {
    client.number = static_cast<unsigned>(&client - clients_.data());
    client.clock = {clock_rate(), millis(0, 1e9)};
    at(millis(0, 2'000), [this, &client] {
      if (client.life == 0) want(client);
    });
  }
  at(millis(20, 20), [this] { watch_the_lock(); });
  if (calm()) return;
  if (!setting.reliable) {
    lost_ = one_of({0.0, 0.01, 0.05});
    late_ = one_of({0.0, 0.02, 0.1});
    doubled_ = one_of({0.0, 0.02});
    fail_next(&World::stop_server);
    fail_next(&World::cut_link);
  }
  if (setting.stopped > 0) fail_next(&World::stop_client);
  if (setting.killed > 0) fail_next(&World::kill_client);
  if (setting.crowd_stops) fail_next(&World::stop_crowd);
  if (setting.crashes != Crashes::none) fail_next(&World::crash_server);
  if (setting.server_clocks_jump || breaks(Rule::wall_clock)) fail_next(&World::clock_jumps);
  if (setting.breaks) fail_next(&World::force_release);
  if (setting.breaks) fail_next(&World::delete_by_hand);
}

double World::clock_rate() {
  if (setting_.extreme_drift) return 1 + (chance(0.5) ? setting_.drift : -setting_.drift);
  return 1 + real(-setting_.drift, setting_.drift);
}

Nanos World::delay() {
  if (!calm() && !setting_.reliable) {
    if (chance(late_)) return ttls(0.01, 1.5);
    if (chance(0.05)) return millis(10, 300);
  }
  return setting_.far_away ? millis(20, 70) : millis(0.2, 3);
}

std::string World::new_id() {
  constexpr std::size_t kDigits = 32;
  std::string out = std::to_string(++ids_);
  return std::string(kDigits - out.size(), '0') + out;
}

Verdict World::run() {
  while (!verdict_.broken && !queue_.empty() && queue_.top().when < setting_.length) {
    now_ = queue_.top().when;
    const Action what = queue_.top().what;
    queue_.pop();
    what();
  }
  now_ = setting_.length;
  for (SimServer& server : servers_) {
    if (const std::string left = server.left(now_); !left.empty()) broken(Broken::left, left);
  }
  return verdict_;
}

void World::as(Client& client, unsigned life, Action what) {
  if (client.life != life) return;
  if (now_ >= client.stopped_until) return what();
  at(client.stopped_until,
     [this, &client, life, what = std::move(what)] { as(client, life, what); });
}

void World::when(Client& client, Deadline due, Action what) {
  if (due == kNever) return;
  const Nanos then = std::max(now_, client.clock.true_time(due)) + millis(0, 1);
  at(then, [this, &client, due, life = client.life, what = std::move(what)] {
    as(client, life, [this, &client, due, what] {
      if (local(client) >= due) return what();
      when(client, due, what);  // its clock was set back
    });
  });
}

// ------------------------------------------------------------------------------------ the network

bool World::is_lost(const Client& client, unsigned server) {
  if (setting_.one_reaches_only_first && client.number == 0 && server != 0) return true;
  if (calm()) return false;
  return cut_until_[client.number][server] > now_ || chance(lost_);
}

// `outlives`: it goes on when the client does something else.
void World::request(Client& client, unsigned server, std::function<Reply(SimServer&)> what,
                    std::function<void(const Reply&)> on_reply, bool outlives) {
  ++verdict_.requests;
  if (is_lost(client, server)) return;
  const unsigned life = client.life;
  const unsigned times = !calm() && chance(doubled_) ? 2 : 1;
  for (unsigned i = 0; i < times; ++i) {
    after_delay(delay(), [this, &client, server, what, on_reply, life, outlives] {
      serve(client, server, what, on_reply, life, outlives);
    });
  }
}

void World::serve(Client& client, unsigned server, const std::function<Reply(SimServer&)>& what,
                  const std::function<void(const Reply&)>& on_reply, unsigned life, bool outlives) {
  SimServer& its = servers_[server];
  if (its.down) return;
  if (its.stopped_until > now_) {
    at(its.stopped_until + millis(0, 10), [this, &client, server, what, on_reply, life, outlives] {
      serve(client, server, what, on_reply, life, outlives);
    });
    return;
  }
  const Reply reply = what(its);
  if (!its.broken().empty()) broken(Broken::server, its.broken());
  deliver_messages(server);
  if (is_lost(client, server)) return;
  after_delay(delay(), [this, &client, reply, on_reply, life, outlives] {
    if (outlives) return on_reply(reply);
    as(client, life, [reply, on_reply] { on_reply(reply); });
  });
}

Reply World::run(SimServer& server, const ScriptCall& call) {
  Reply reply = server.serve(call, now_);
  if (!watch_.trace) return reply;
  std::string words;
  for (const Reply& item : reply.items) {
    words += ' ' + (item.kind == Reply::Kind::text ? item.text : std::to_string(item.integer));
  }
  std::string holders;
  for (const SimServer::Holder& holder : server.holders(now_)) {
    holders += ' ' + holder.waiter + ':' + std::to_string(holder.round);
  }
  say("  server ", &server - servers_.data(), ": ", call.script->name, ' ', call.arguments[0], ':',
      call.arguments[1], " ->", words, "; held by", holders);
  return reply;
}

void World::deliver_messages(unsigned server) {
  for (const auto& [waiter, words] : servers_[server].take_messages()) {
    if (!client_of_.contains(waiter)) continue;
    Client& client = clients_[client_of_.at(waiter)];
    if (client.waiter.id != waiter || cut_until_[client.number][server] > now_) continue;
    after_delay(millis(0.2, 3), [this, &client, server, words, life = client.life] {
      as(client, life, [this, &client, server, words] {
        const redis::Message message = redis::parse_message(words);
        if (client.doing == Doing::acquiring) {
          client.protocol->heard(server, message, local(client));
          pump(client);
        } else if (message.kind == redis::Message::Kind::revoked) {
          renew(client);
        }
      });
    });
  }
}

// ----------------------------------------------------------------------------------------- faults

void World::fail_next(void (World::*fault)()) {
  after_delay(millis(1'000, 15'000), [this, fault] {
    if (calm()) return;
    (this->*fault)();
    fail_next(fault);
  });
}

void World::stop_server() {
  SimServer& server = servers_[below(setting_.servers)];
  server.stopped_until = now_ + millis(50, 3'000);
}

void World::stop(Client& client, Millis length) {
  client.stopped_until = client.thawed = std::max(client.stopped_until, now_ + length);
  say("client ", client.number, " is stopped");
}

void World::stop_client() {
  Client& client = clients_[below(std::min(setting_.stopped, setting_.clients))];
  stop(client, one_of({Millis{100}, Millis{2'000}, Millis{15'000}}));
}

void World::stop_crowd() {
  for (Client& client : clients_) {
    if (&client == &clients_.back()) break;
    stop(client, Millis{25'000});
  }
}

void World::kill_client() {
  die(clients_[below(std::min(setting_.killed, setting_.clients))]);  // with its job
}

void World::cut_link() {
  const Nanos end = std::min(now_ + millis(100, 12'000), Nanos(setting_.calm_from));
  const unsigned client = below(setting_.clients);
  const unsigned server = below(setting_.servers);
  const unsigned how = below(4);
  for (unsigned c = 0; c < setting_.clients; ++c) {
    for (unsigned s = 0; s < setting_.servers; ++s) {
      const bool is_cut = (how == 0 || c == client) && (how == 1 || s == server);
      if (is_cut) cut_until_[c][s] = std::max(cut_until_[c][s], end);
    }
  }
  say("client ", client, ", server ", server, ": cut, in way ", how);
}

void World::crash_server() {
  const auto is_down = [](const SimServer& server) { return server.down; };
  if (std::any_of(servers_.begin(), servers_.end(), is_down)) return;
  const unsigned number = below(setting_.servers);
  SimServer& server = servers_[number];
  server.down = true;
  for (Client& client : clients_) {
    if (client.subscribed.erase(number) > 0) server.stop_listening(client.waiter.id);
  }
  Nanos away = millis(100, 5'000);
  const auto out = static_cast<double>(setting_.ttl.count()) * (1 + 3 * setting_.drift);
  if (setting_.crashes == Crashes::forget_for_a_ttl) away = millis(out, out + 3'000);
  if (setting_.crashes == Crashes::forget_at_once) away = millis(1, 200);
  if (setting_.crashes != Crashes::keep_data) server.forget();
  say("server ", number, " crashes");
  after_delay(away, [&server] { server.down = false; });
}

void World::clock_jumps() {
  if (breaks(Rule::wall_clock)) {
    clients_[below(setting_.clients)].clock.offset += millis(-30'000, 30'000);
  } else {
    servers_[below(setting_.servers)].clock.offset += millis(-30'000, 30'000);
  }
}

// Of a holder; or of an id that was shown a moment ago, whatever has become of it.
void World::force_release() {
  Client& client = clients_[below(setting_.clients)];
  if (client.waiter.id.empty() || !client.protocol) return;
  const bool holds = client.doing == Doing::holding;
  if (!holds && chance(0.5)) return;
  const unsigned round = holds ? client.round : client.protocol->round();
  const std::string id = chance(0.2) ? client.waiter.id : client.waiter.grant_id(round);
  ++verdict_.breaks;
  say("an operator breaks ", id);
  client.is_broken = true;
  const auto broken_by = std::make_shared<unsigned>(0);
  Client& operator_ = clients_[below(setting_.clients)];
  for (unsigned server = 0; server < setting_.servers; ++server) {
    request(
        operator_, server,
        [this, call = redis::break_call(names_, id, "why")](SimServer& its) {
          return run(its, call);
        },
        [this, &client, broken_by, holds, life = client.life, round](const Reply& reply) {
          if (reply.number() != 1 || ++*broken_by != needed() || !holds) return;
          if (client.life == life && client.round == round) check_that_it_ends(client, Nanos{0});
        },
        true);
  }
}

// A holder goes on for a ttl at most when a majority does not have its grant any more.
void World::check_that_it_ends(const Client& client, Nanos broken_in) {
  after_delay(broken_in + ttls(1.06, 1.06),
              [this, &client, life = client.life, round = client.round] {
                const bool goes_on = client.life == life && client.doing == Doing::holding &&
                                     client.round == round && local(client) < client.valid_until;
                if (goes_on) broken(Broken::outlived_break, std::to_string(client.number));
              });
}

// On one server after another, of any holder.
void World::delete_by_hand() {
  Client& client = clients_[below(setting_.clients)];
  if (client.doing != Doing::holding) return;
  say("an operator deletes the lock");
  const Nanos pause = millis(1, 4'000);
  for (unsigned server = 0; server < setting_.servers; ++server) {
    after_delay(server * pause, [this, server] {
      for (const SimServer::Holder& holder : servers_[server].holders(now_)) {
        if (client_of_.contains(holder.waiter)) {
          Client& its = clients_[client_of_.at(holder.waiter)];
          its.is_broken = its.is_broken || its.waiter.id == holder.waiter;
        }
      }
      servers_[server].remove_lock();
    });
  }
  if (setting_.crashes >= Crashes::forget_for_a_ttl) return;  // a deletion is forgotten, too
  check_that_it_ends(client, setting_.servers * pause);
}

Verdict simulate(const Setting& setting, std::uint64_t seed, const Watch& watch) {
  return World(setting, seed, watch).run();
}

}  // namespace dlock::sim::protocol
