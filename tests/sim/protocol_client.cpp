// A client: AcquireProtocol, and what the engine does with a LeaseSchedule.  It renews; ends its
// job at give_up_at, kills it at kill_at, or its launcher does; and leaves when the job has ended.
#include <algorithm>
#include <memory>

#include "backends/redis/record.hpp"
#include "core/lease_time.hpp"
#include "protocol_world.hpp"

namespace dlock::sim::protocol {
namespace {

using redis::VoteAnswer;
using State = AcquireProtocol::State;
using Vote = Votes::Vote;

constexpr unsigned kLeaveTries = 4;

}  // namespace

// -------------------------------------------------------------------------- a client that acquires

void World::think(Client& client) {
  ++client.life;
  client.doing = Doing::nothing;
  const Nanos pause = calm() ? millis(10, 2'000) : millis(10, 4'000);
  at(std::max(now_, client.stopped_until) + pause, [this, &client, life = client.life] {
    if (client.life == life) want(client);
  });
}

void World::want(Client& client) {
  if (now_ > setting_.length - kWindDown) return;
  ++client.life;
  client.doing = Doing::acquiring;
  switch (setting_.use) {
    case Use::exclusive:
      client.mode = Mode::exclusive;
      break;
    case Use::shared_too:
      client.mode = one_of({Mode::exclusive, Mode::shared, Mode::shared});
      break;
    case Use::slots:
      client.mode = Mode::slots;
      break;
    case Use::all_modes:
      client.mode = one_of({Mode::exclusive, Mode::shared, Mode::slots});
      break;
  }
  client.waits = calm() || !chance(0.1);
  client.came = local(client);
  client.came_at = now_;
  client.was_refused = false;
  client.hands_over = !calm() && chance(0.2);
  become_waiter(client);
  const bool is_far = setting_.one_reaches_only_first && client.number == 0;
  if (is_far ||
      (!calm() && !setting_.always_live && chance(0.1))) {  // it waits for so long at most
    when(client, local(client) + Nanos(ttls(0, 2)), [this, &client] {
      if (client.doing != Doing::acquiring) return;
      leave(client);
      think(client);
    });
  }
}

// For the first time, or because the one before was broken.
void World::become_waiter(Client& client) {
  client.waiter = {
      .id = new_id(), .mode = redis::mode_text(client.mode, setting_.slots), .names = names_};
  client_of_[client.waiter.id] = client.number;
  std::vector<unsigned> order(setting_.servers);
  for (unsigned server = 0; server < setting_.servers; ++server) order[server] = server;
  client.protocol.emplace(
      AcquireProtocol::Options{.order = std::move(order),
                               .ttl = setting_.ttl,
                               .slots = client.mode == Mode::slots ? setting_.slots : 0,
                               .waits = client.waits,
                               .round_within = kAnswerWithin,
                               .seed = random_()});
  client.is_broken = false;
  client.subscribed.clear();
  client.unanswered.assign(setting_.servers, 0);
  client.rounds_asked.clear();
  client.protocol->ask(local(client));
  pump(client);
}

// What follows from what the client has been told.
void World::pump(Client& client) {
  AcquireProtocol& protocol = *client.protocol;
  for (const Order& order : protocol.take_orders()) send(client, order);
  switch (protocol.state()) {
    case State::granted:
      return hold(client);
    case State::conflict:
      leave(client);
      return think(client);
    case State::given_up:
      ++verdict_.given_up;
      leave(client);
      return become_waiter(client);
    case State::duplicate:
      return broken(Broken::server, "it is said to be listed twice");
    case State::sleeping:
      client.was_refused = true;
      if (client.waits) break;
      if (protocol.start_last_round(local(client))) return pump(client);
      leave(client);
      return think(client);
    default:
      break;
  }
  when(client, protocol.wake_at(), [this, &client, alarm = ++client.alarm] {
    if (client.alarm != alarm || client.doing != Doing::acquiring) return;
    client.protocol->tick(local(client));
    pump(client);
  });
}

// The number of a server in the client's list, the server list, and the token stand at the end.
std::string World::record(const Client& client, unsigned round, unsigned server,
                          std::uint64_t token, unsigned number) const {
  std::string out = R"({"id":")" + client.waiter.grant_id(round) + R"(","slots":)" +
                    std::to_string(setting_.slots);
  if (number > 0) out += ",\"slot\":" + std::to_string(number);
  if (!single()) out += R"(,"servers":"0","node":)" + std::to_string(server);
  if (token > 0) out += ",\"fence\":" + std::to_string(token);
  return out + '}';
}

void World::send(Client& client, Order order) {
  const unsigned server = order.server;
  const redis::WaiterId waiter = client.waiter;
  if (order.kind == Order::Kind::undo) {
    if (breaks(Rule::undo_names_later_rounds)) order.round += 1'000;
    const bool quiet = order.quiet || breaks(Rule::never_loud);
    ++verdict_.failed_rounds;
    return request(
        client, server,
        [this, call = call(waiter, order.round, redis::Leave{.quiet = quiet})](SimServer& its) {
          return run(its, call);
        },
        [](const Reply&) {});
  }
  if (order.kind == Order::Kind::leave_queue) {
    return request(
        client, server,
        [this, call = call(waiter, 0, redis::Leave{.final = true})](SimServer& its) {
          return run(its, call);
        },
        [](const Reply&) {});
  }
  if (order.kind == Order::Kind::ask) {
    send_ask(client, order);
    if (!single()) return;
    // The driver has its own deadline for a single server, and drops the connection then.
    return when(client, after(local(client), kAnswerWithin), [this, &client, order, waiter] {
      if (client.waiter.id != waiter.id || client.doing != Doing::acquiring) return;
      client.protocol->failed(order, local(client));
      pump(client);
    });
  }
  const bool is_front = !client.rounds_asked.contains(order.round);
  if (is_front && order.server == 0) ++verdict_.front_rounds;
  if (is_front && breaks(Rule::no_front_round) && order.round > 0) return;
  const unsigned round = breaks(Rule::one_round_for_all) ? 1 : order.round;
  const redis::VoteRequest vote{.ttl = setting_.ttl,
                                .record = record(client, round, server, order.token, order.number),
                                .token = order.token,
                                .number = order.number,
                                .server = std::to_string(server)};
  ++client.unanswered[server];
  request(
      client, server,
      [this, call = call(waiter, round, vote)](SimServer& its) { return run(its, call); },
      [this, &client, order, waiter](const Reply& reply) {
        if (client.waiter.id != waiter.id) return;
        if (client.unanswered[order.server] > 0) --client.unanswered[order.server];
        if (client.doing != Doing::acquiring) return;
        const VoteAnswer answer = redis::vote_answer(reply);
        if (answer.kind == VoteAnswer::Kind::overtaken) ++verdict_.overtaken;
        if (answer.kind == VoteAnswer::Kind::taken) ++verdict_.taken;
        client.protocol->answered(order, answer, local(client));
        if (breaks(Rule::votes_of_one_server) && answer.kind == VoteAnswer::Kind::yes) {
          for (Order other = order; other.server < needed(); ++other.server) {
            client.protocol->answered(other, answer, local(client));
          }
        }
        pump(client);
      });
}

// A waiter listens before it joins the queue.
void World::send_ask(Client& client, const Order& order) {
  client.rounds_asked.insert(order.round);
  const unsigned server = order.server;
  const redis::WaiterId waiter = client.waiter;
  if (order.join && !client.subscribed.contains(server)) {
    return request(
        client, server,
        [waiter](SimServer& its) {
          its.listen(waiter.id);
          return Reply();
        },
        [this, &client, order, waiter](const Reply&) {
          if (client.waiter.id != waiter.id || client.doing != Doing::acquiring) return;
          client.subscribed.insert(order.server);
          if (client.protocol->awaits(order)) send_ask(client, order);
        });
  }
  const unsigned round = breaks(Rule::one_round_for_all) ? 1 : order.round;
  const redis::Ask ask{
      .ttl = setting_.ttl,
      .record = record(client, round, server, 0, 0),
      .join = order.join,
      .waited = std::chrono::duration_cast<std::chrono::microseconds>(local(client) - client.came),
      .server = single() ? "" : std::to_string(server),
      .seen = {}};
  ++client.unanswered[server];
  request(
      client, server,
      [this, call = call(waiter, round, ask)](SimServer& its) { return run(its, call); },
      [this, &client, order, waiter](const Reply& reply) {
        if (client.waiter.id != waiter.id) return;
        if (client.unanswered[order.server] > 0) --client.unanswered[order.server];
        if (client.doing != Doing::acquiring) return;
        client.protocol->answered(order, redis::ask_answer(reply), local(client));
        pump(client);
      });
}

// At each server that may have something of this waiter.
void World::leave(Client& client) {
  gone_.insert(client.waiter.id);
  stop_listening(client);
  for (unsigned server = 0; server < setting_.servers; ++server) {
    if (!client.hands_over && !client.protocol->asked_servers()[server]) continue;
    const bool may_be_lost = server == 0 && client.doing == Doing::holding;
    if (may_be_lost && chance(setting_.release_lost_at_first)) continue;
    const bool in_doubt = client.unanswered[server] > 0 || client.hands_over;
    leave_at(client, server, client.waiter, client.protocol->round(), in_doubt);
  }
}

void World::leave_at(Client& client, unsigned server, const redis::WaiterId& waiter, unsigned round,
                     bool in_doubt) {
  const auto is_done = std::make_shared<bool>(false);
  const auto send = [this, &client, server, waiter, round, is_done](bool in_doubt_now) {
    if (*is_done) return;
    const redis::Leave how{.final = true, .in_doubt = in_doubt_now};
    request(
        client, server,
        [this, call = call(waiter, round, how)](SimServer& its) { return run(its, call); },
        [is_done](const Reply&) { *is_done = true; }, true);
  };
  send(in_doubt);
  for (unsigned i = 1; i < kLeaveTries; ++i) {
    after_delay(i * millis(300, 300), [send] { send(true); });
  }
}

void World::stop_listening(Client& client) {
  for (const unsigned server : std::exchange(client.subscribed, {})) {
    servers_[server].stop_listening(client.waiter.id);
  }
}

// Without a word.  Its connections end.
void World::die(Client& client) {
  say("client ", client.number, " is killed");
  stop_listening(client);
  client.stopped_until = now_;
  client.waiter.id.clear();
  client.job_runs = false;
  think(client);
}

// ---------------------------------------------------------------------------- a client that holds

void World::hold(Client& client) {
  const AcquireProtocol& protocol = *client.protocol;
  const Deadline now = local(client);
  const Deadline asked = protocol.asked_at();
  Deadline valid_until = trusted_until(asked, setting_.ttl);
  if (breaks(Rule::deadline_from_the_answer)) valid_until = trusted_until(now, setting_.ttl);
  if (breaks(Rule::no_drift_allowance)) valid_until = after(asked, setting_.ttl);
  if (now >= margins().term_at(valid_until)) {  // the engine does not start a job with it
    leave(client);
    return think(client);
  }
  ++client.alarm;
  client.doing = Doing::holding;
  client.round = breaks(Rule::one_round_for_all) ? 1 : protocol.round();
  client.fence = protocol.token();
  client.slot = protocol.number();
  say("client ", client.number, " (", client.waiter.grant_id(client.round), ", ",
      client.waiter.mode, ") holds, fence ", client.fence, ", slot ", client.slot);
  ++verdict_.grants;
  free_since_.reset();
  if (client.was_refused) ++verdict_.waits;
  client.forgetful.clear();
  client.renewal.reset();
  client.lost = false;
  client.job_runs = false;
  client.valid_until = valid_until;
  client.schedule.emplace(valid_until, setting_.ttl, margins(), random_());
  if (client.came_at >= setting_.calm_from) {
    verdict_.longest_wait = std::max(verdict_.longest_wait, now_ - client.came_at);
  }
  check_overlap(Broken::claims, [this](const Client& each) { return claims(each); });
  check_fence(client);
  check_order(client);
  lease_moved(client);
  when(client, now, [this, &client] { start_job(client); });
  when(client, client.schedule->next_attempt(), [this, &client] { renew(client); });
}

void World::start_job(Client& client) {
  if (client.lost || local(client) >= client.schedule->give_up_at()) return release(client);
  client.job_runs = true;
  client.job_obeys_in = chance(0.3) ? millis(0, 100) : ttls(100, 100);
  check_overlap(Broken::jobs, [](const Client& each) { return each.job_runs; });
  const Nanos lasts = calm() ? millis(0, 100) : millis(0, one_of({1.0, 500.0, 5'000.0, 25'000.0}));
  at(now_ + lasts, [this, &client, life = client.life] {
    if (client.life == life) end_job(client);
  });
}

// By itself, or killed.  The supervisor sees it when it runs.
void World::end_job(Client& client) {
  if (!client.job_runs) return;
  client.job_runs = false;
  as(client, client.life, [this, &client] { release(client); });
}

void World::lease_moved(Client& client) {
  const std::uint64_t lease = ++client.lease;
  if (breaks(Rule::late_renewal_accepted)) return;  // nobody looks whether it has come
  when(client, client.schedule->give_up_at(), [this, &client, lease] {
    if (client.lease == lease && client.doing == Doing::holding && !client.lost) lose(client);
  });
  if (breaks(Rule::no_launcher)) return;
  launcher_kills(client, margins().launcher_kills_at(client.valid_until));
}

// It is not stopped with the supervisor.
void World::launcher_kills(Client& client, Deadline when) {
  at(std::max(now_, client.clock.true_time(when)) + millis(0, 5),
     [this, &client, when, lease = client.lease, life = client.life] {
       if (client.life != life || client.lease != lease || !client.job_runs) return;
       if (local(client) < when) return launcher_kills(client, when);  // its clock was set back
       if (breaks(Rule::job_not_killed)) return;
       ++verdict_.launcher_kills;
       end_job(client);
     });
}

void World::renew(Client& client) {
  if (client.doing != Doing::holding || client.lost) return;
  const std::uint64_t number = ++client.renewals;
  client.asked = local(client);
  client.renewal.emplace(setting_.servers, breaks(Rule::renewal_by_one_server) ? 1 : needed());
  for (unsigned server = 0; server < setting_.servers; ++server) {
    const redis::Renew how{
        .ttl = setting_.ttl,
        .record = record(client, client.round, server, client.fence, client.slot),
        .server = single() ? "" : std::to_string(server)};
    request(
        client, server,
        [this, call = call(client.waiter, client.round, how)](SimServer& its) {
          return run(its, call);
        },
        [this, &client, server, number](const Reply& reply) {
          if (client.renewals != number || !client.renewal) return;
          judge_renewal(client, server, redis::renew_answer(reply));
        });
  }
  Deadline until =
      std::min(after(client.asked, kAnswerWithin), client.schedule->attempt_until(client.asked));
  if (breaks(Rule::late_renewal_accepted)) until = after(client.asked, 2 * setting_.ttl);
  when(client, until, [this, &client, number] {
    if (client.renewals != number || !client.renewal) return;
    client.renewal.reset();
    client.schedule->failed(local(client));
    when(client, client.schedule->next_attempt(), [this, &client, number] {
      if (client.renewals == number) renew(client);
    });
  });
}

void World::judge_renewal(Client& client, unsigned server, const redis::RenewAnswer& answer) {
  using Kind = redis::RenewAnswer::Kind;
  Votes& renewal = *client.renewal;
  renewal.put(server, answer.kind == Kind::renewed ? Vote::yes : Vote::no);
  if (answer.kind == Kind::free) client.forgetful.insert(server);
  const Deadline now = local(client);
  if (renewal.reached()) {
    client.renewal.reset();
    Deadline valid_until = trusted_until(client.asked, setting_.ttl);
    if (breaks(Rule::renewal_deadline_from_the_answer)) {
      valid_until = trusted_until(now, setting_.ttl);
    }
    if (breaks(Rule::no_drift_allowance)) valid_until = after(client.asked, setting_.ttl);
    if (breaks(Rule::late_renewal_accepted)) {
      client.schedule.emplace(valid_until, setting_.ttl, margins(), random_());
    } else if (!client.schedule->renewed(client.asked, now, valid_until)) {
      return lose(client);
    }
    ++verdict_.renewals;
    client.valid_until = valid_until;
    check_overlap(Broken::claims, [this](const Client& each) { return claims(each); });
    lease_moved(client);
    for (const unsigned forgetful : std::exchange(client.forgetful, {})) {
      give_again(client, forgetful);
    }
    when(client, client.schedule->next_attempt(), [this, &client, number = client.renewals] {
      if (client.renewals == number) renew(client);
    });
  } else if (renewal.denied()) {
    client.renewal.reset();
    if (claims(client) && !client.is_broken) {
      broken(Broken::lost_too_soon, "client " + std::to_string(client.number));
    }
    lose(client);
  }
}

void World::give_again(Client& client, unsigned server) {
  const redis::VoteRequest vote{
      .ttl = std::chrono::duration_cast<Millis>(client.valid_until - local(client)),
      .record = record(client, client.round, server, client.fence, client.slot),
      .token = client.fence,
      .number = client.slot,
      .server = std::to_string(server),
      .again = true};
  ++client.unanswered[server];
  request(
      client, server,
      [this, call = call(client.waiter, client.round, vote)](SimServer& its) {
        const Reply reply = run(its, call);
        if (redis::vote_answer(reply).kind == VoteAnswer::Kind::yes) ++verdict_.agains;
        return reply;
      },
      [&client, server](const Reply&) {
        if (client.unanswered[server] > 0) --client.unanswered[server];
      });
}

void World::lose(Client& client) {
  say("client ", client.number, " has lost it");
  ++verdict_.losses;
  client.lost = true;
  client.renewal.reset();
  if (!client.job_runs) return;  // it will not start, or has ended: the supervisor is about to see
  if (breaks(Rule::released_before_the_end)) release(client);
  if (breaks(Rule::job_not_killed)) return;
  at(now_ + client.job_obeys_in, [this, &client, life = client.life] {
    if (client.life == life) end_job(client);
  });
  const Deadline kill_at =
      std::min(margins().kill_at(client.valid_until), after(local(client), margins().kill_after));
  when(client, kill_at, [this, &client] {
    at(now_ + millis(0, 5), [this, &client, life = client.life] {
      if (client.life == life) end_job(client);
    });
  });
}

void World::release(Client& client) {
  if (client.doing != Doing::holding) return;
  if (client.job_runs) {
    broken(Broken::early_release, "client " + std::to_string(client.number));
  }
  say("client ", client.number, " releases");
  leave(client);
  client.job_runs = false;
  think(client);
}

}  // namespace dlock::sim::protocol
