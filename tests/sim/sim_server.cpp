#include "sim_server.hpp"

#include <algorithm>
#include <set>
#include <sstream>

namespace dlock::sim {
namespace {

// The time of a server's clock when that of the simulation is 0.
constexpr std::chrono::microseconds kBeginning{1'700'000'000'000'000};

}  // namespace

SimServer::SimServer(const redis::Names& names, Millis ttl, LocalClock its_clock,
                     const std::vector<ScriptBug>& bugs)
    : clock(its_clock), names_(names), ttl_(ttl) {
  for (const ScriptBug& bug : bugs) {
    std::string_view& text = texts_.emplace(bug.script, bug.script->text).first->second;
    text = with_bug(text, bug);
  }
}

// In ms.
std::int64_t SimServer::set_clock(Nanos now) {
  const auto time =
      kBeginning + std::chrono::floor<std::chrono::microseconds>(clock.at(now).time_since_epoch());
  data().set_clock(static_cast<std::uint64_t>(time.count()));
  return time / Millis{1};
}

redis::Reply SimServer::serve(const redis::ScriptCall& call, Nanos now) {
  const std::int64_t now_ms = set_clock(now);
  const auto before = holders(now);
  const auto bug = texts_.find(call.script);
  redis::Reply reply = server_.eval(bug == texts_.end() ? call.script->text : bug->second,
                                    call.keys, call.arguments);
  if (reply.is_error()) broken_ = std::string(call.script->name) + ": " + reply.text;
  if (!reply.is(call.shape)) broken_ = std::string(call.script->name) + ": its answer";
  check(call, before, holders(now), now_ms);
  return reply;
}

void SimServer::listen(const std::string& waiter) {
  data().listen(names_.channels + waiter);
  listeners_.insert(waiter);
}

void SimServer::stop_listening(const std::string& waiter) {
  const auto its = listeners_.find(waiter);
  if (its == listeners_.end()) return;
  data().stop_listening(names_.channels + waiter);
  listeners_.erase(its);
}

void SimServer::forget() {
  data().forget();
  given_up_.clear();
}

void SimServer::remove_lock() {
  const std::vector<std::string> words{"DEL", names_.lock};
  data().call(words);
}

// A script changes only what its waiter has, but for offers of what is free, to those that listen.
void SimServer::check(const redis::ScriptCall& call, const std::vector<Holder>& before,
                      const std::vector<Holder>& after, std::int64_t now_ms) {
  const std::string& waiter = call.arguments[0];
  const auto fail = [&](const std::string& how, const Holder& holder) {
    broken_ = std::string(call.script->name) + " for " + waiter + ": " + how + ", " +
              holder.waiter + " round " + std::to_string(holder.round);
  };
  const bool is_break = call.script == &redis::kBreak;
  const auto is_in = [](const Holder& holder, const std::vector<Holder>& list) {
    return std::find(list.begin(), list.end(), holder) != list.end();
  };
  for (const Holder& holder : before) {
    if (is_in(holder, after)) continue;
    if (holder.waiter != waiter) fail("it changed another's grant", holder);
    if (is_break && std::to_string(holder.round) != call.arguments[1])
      fail("another round", holder);
  }
  for (const Holder& holder : after) {
    const bool was_there = std::any_of(before.begin(), before.end(), [&](const Holder& its) {
      return its.waiter == holder.waiter && its.round == holder.round;
    });
    if (was_there) continue;
    if (given_up_.contains(holder.waiter)) fail("a grant to one that was given up", holder);
    if (holder.round == 0 && !listeners_.contains(holder.waiter)) fail("an offer to none", holder);
  }
  const bool is_last_leave =
      call.script == &redis::kLeave && call.arguments[5] == "1" && call.arguments[6] == "1";
  if (is_last_leave || (is_break && call.arguments[1] != "0")) given_up_.insert(waiter);
  std::set<std::string> numbers;
  for (const Holder& holder : after) {
    if (holder.ends - now_ms > ttl_.count()) fail("it keeps a grant for more than a ttl", holder);
    if (!holder.number.empty() && !numbers.insert(holder.number).second) {
      fail("it gave a number twice", holder);
    }
  }
}

std::vector<SimServer::Holder> SimServer::holders(Nanos now) {
  const std::int64_t now_ms = set_clock(now);
  std::vector<Holder> out;
  for (const auto& [id, ends] : data().holders(names_.lock)) {
    if (ends <= now_ms) continue;
    Holder holder{.waiter = id.substr(0, id.find(':')), .number = {}, .ends = ends};
    std::string round = id.size() > holder.waiter.size() ? id.substr(id.find(':') + 1) : "0";
    const std::vector<std::string> words{"HGET", names_.owner, "~" + id};
    const auto found = data().call(words).reply;
    if (found.kind == redis::Reply::Kind::text) {
      round = found.text.substr(0, found.text.find(':'));
      if (round.size() < found.text.size()) holder.number = found.text.substr(round.size() + 1);
    }
    holder.round = static_cast<unsigned>(std::stoul(round));
    out.push_back(std::move(holder));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> SimServer::take_messages() {
  auto out = data().take_messages();
  for (auto& [channel, words] : out) channel = channel.substr(names_.channels.size());
  return out;
}

// Reasons and waiters that were given up are kept for a while, a queue without living waiters for a
// day, and the counter for a week.
std::string SimServer::left(Nanos now) {
  set_clock(now);
  std::istringstream lines(data().contents());
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const bool may_stay = line.starts_with(names_.counter) || line.starts_with(names_.given_up) ||
                          line.starts_with(names_.revoked) || line.starts_with(names_.queue);
    if (!may_stay) out += line + '\n';
  }
  return out;
}

}  // namespace dlock::sim
