#include "backends/redis/node.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "backends/redis/look.hpp"
#include "backends/redis/record.hpp"

namespace dlock::redis {
namespace {

// So many locks are looked at in one request: a reply stays small, and a round trip is worth it.
constexpr std::size_t kPortion = 100;
// Of all names that a scan finds, and its cursors.  A million locks take less than half as much.
constexpr std::size_t kMostScannedBytes = std::size_t{256} * 1024 * 1024;
// Each looks at kScanned keys: enough for a billion.
constexpr unsigned kMostScans = 1'000'000;
constexpr const char* kScanned = "1000";
constexpr std::string_view kLookShape = "*$:$**";
constexpr std::string_view kGlanceShape = "*$:$*::";

std::string ms(Millis duration) { return std::to_string(duration.count()); }

std::string slot_text(unsigned slot) { return slot > 0 ? std::to_string(slot) : ""; }

std::string with_slot(std::string record, unsigned slot) {
  if (slot == 0) return record;
  record.pop_back();
  return record + ",\"slot\":" + std::to_string(slot) + '}';
}

std::string_view turn_text(Turn turn) {
  switch (turn) {
    case Turn::once:
      return "once";
    case Turn::wait:
      return "wait";
    case Turn::called:
      return "go";
    case Turn::late:
      break;
  }
  return "late";
}

// `arguments`: id, mode, and what only this script takes.
Command script_command(bool by_text, const Script& script, const Names& names,
                       const std::vector<std::string>& more_keys,
                       const std::vector<std::string>& arguments) {
  Command out{by_text ? "EVAL" : "EVALSHA", std::string(by_text ? script.text : script.sha1),
              std::to_string(4 + more_keys.size())};
  const auto add = [&](auto begin, auto end) { out.insert(out.end(), begin, end); };
  const std::array keys{names.lock, names.counter, names.owner, names.queue};
  const std::array prefixes{names.channels, names.waiter};
  const auto own = arguments.begin() + 2;
  add(keys.begin(), keys.end());
  add(more_keys.begin(), more_keys.end());
  add(arguments.begin(), own);
  add(prefixes.begin(), prefixes.end());
  add(own, arguments.end());
  return out;
}

}  // namespace

Node::Node(Address address, std::string prefix, std::optional<Seat> seat)
    : connection_(std::move(address)),
      prefix_(std::move(prefix)),
      seat_(std::move(seat)),
      number_(seat_ ? std::to_string(seat_->number) : "") {}

// At the end, and the token behind it, as fence.lua writes it: the scripts look for them there.
std::string Node::seated(std::string record, std::uint64_t token) const {
  if (!seat_) return record;
  record.pop_back();
  record += ",\"servers\":\"" + seat_->list + "\",\"node\":" + number_;
  if (token > 0) record += ",\"fence\":" + std::to_string(token);
  return record + '}';
}

Result<Reply> Node::run(const Script& script, std::string_view shape, const Names& names,
                        const std::vector<std::string>& more_keys,
                        const std::vector<std::string>& arguments, Deadline deadline, Cancel cancel,
                        bool by_text) {
  const Millis to_answer = std::max(remaining(deadline), Millis{1});
  const auto start_to_count = [&] {
    if (seat_) deadline = after(Clock::now(), to_answer);
  };
  if (seat_) {
    const Deadline connected = after(Clock::now(), std::max(address().patience, to_answer));
    if (auto ok = connection_.connect(connected, cancel); !ok) return ok.error();
    start_to_count();
  }
  by_text = by_text || lacks_evalsha_;
  Command command = script_command(by_text, script, names, more_keys, arguments);
  auto reply = connection_.ask(command, deadline, cancel);
  if (!by_text && reply && needs_text(*reply)) {
    start_to_count();
    command = script_command(true, script, names, more_keys, arguments);
    reply = connection_.ask(command, deadline, cancel);
  }
  if (!reply || reply->is(shape)) return reply;
  if (!reply->is_error()) return connection_.unexpected_reply();
  return server_error(address(), reply->text);
}

// The answer to a script that was named by its SHA-1.
bool Node::needs_text(const Reply& reply) {
  if (reply.refuses("EVALSHA")) lacks_evalsha_ = true;
  return lacks_evalsha_ || reply.says("NOSCRIPT");
}

Result<Vote> Node::try_acquire(const Request& request, const std::string& record, const Try& how,
                               Deadline deadline, Cancel cancel) {
  const Names its = names(request.key);
  const auto reply =
      run(kAcquire, "*:$", its, {its.waiter + request.owner.id, its.revoked + request.owner.id},
          {request.owner.id, mode_text(request.mode, request.slots), ms(request.ttl),
           seated(record), std::string(turn_text(how.turn)), how.join ? "1" : "0", how.came,
           number_, how.wants_number ? "1" : "0"},
          deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  Vote vote;
  if (answer.at(0).number() == 1) {
    const auto at = [&](std::size_t i) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(answer.at(i).number(), 0));
    };
    vote.kind = Vote::Kind::granted;
    vote.fence = at(1);
    if (seat_) vote.clock_ms = at(2);
    const std::uint64_t slot = at(seat_ ? 3 : 2);
    if (slot <= request.slots) vote.numbers.given = static_cast<unsigned>(slot);
    vote.numbers.taken = answer.at(4).text;
    return vote;
  }
  const std::string& why = answer.at(1).text;
  if (why == "mode") {
    vote.kind = Vote::Kind::other_mode;
    vote.held_mode = answer.at(2).text;
    return vote;
  }
  if (why == "twin") {
    vote.kind = Vote::Kind::twin;
    vote.twin = static_cast<unsigned>(answer.at(2).number());
    return vote;
  }
  if (why == "turn") vote.kind = Vote::Kind::other_turn;
  if (const auto left = answer.at(2).number(-1); left >= 0) vote.look_in = Millis{left};
  vote.came = answer.at(3).text;
  vote.place = static_cast<int>(answer.at(4).number(-1));
  vote.holder = answer.at(5).text;
  vote.list = answer.at(6).text;
  return vote;
}

Result<Written> Node::write_agreed(const Request& request, const std::string& record,
                                   const Agreed& agreed, Deadline deadline, Cancel cancel) {
  const Names its = names(request.key);
  const auto reply =
      run(kFence, "*:", its, {},
          {request.owner.id, mode_text(request.mode, request.slots), std::to_string(agreed.token),
           seated(with_slot(record, agreed.slot)), slot_text(agreed.slot)},
          deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  Written out;
  if (answer.at(0).number() == 1) return out;
  const std::string& why = answer.at(1).text;
  out.kind = why == "overtaken" ? Written::Kind::overtaken
             : why == "taken"   ? Written::Kind::taken
                                : Written::Kind::gone;
  out.counter = static_cast<std::uint64_t>(std::max<std::int64_t>(answer.at(2).number(), 0));
  return out;
}

Result<Extension> Node::extend(const Request& request, const std::string& record,
                               const Agreed& agreed, Deadline deadline, Cancel cancel) {
  const Names its = names(request.key);
  const auto reply = run(kRenew, "*:", its, {its.revoked + request.owner.id},
                         {request.owner.id, mode_text(request.mode, request.slots), ms(request.ttl),
                          seated(record, agreed.token), number_, slot_text(agreed.slot)},
                         deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  Extension out;
  if (answer.at(0).number() == 2) {
    out.twin = static_cast<unsigned>(answer.at(1).number());
    return out;
  }
  out.ours = answer.at(0).number() == 1;
  out.was_endless = out.ours && answer.at(1).number() == -1;
  if (!out.ours) {
    out.why = answer.at(1).text;
    out.found = answer.at(2).text;
  }
  return out;
}

Result<bool> Node::give_again(const Request& request, const std::string& record,
                              const Agreed& agreed, Deadline valid_until, Deadline deadline,
                              Cancel cancel) {
  const Names its = names(request.key);
  const Millis rest = std::max(remaining(valid_until), Millis{1});
  const auto reply =
      run(kAgain, "*:", its, {its.revoked + request.owner.id},
          {request.owner.id, mode_text(request.mode, request.slots), ms(rest),
           seated(record, agreed.token), std::to_string(agreed.token), slot_text(agreed.slot)},
          deadline, cancel);
  if (!reply) return reply.error();
  return reply.value().at(0).number() == 1;
}

Result<Removal> Node::remove(const Request& request, Removing how, Deadline deadline,
                             Cancel cancel) {
  const Names its = names(request.key);
  const auto reply =
      run(kRelease, "*:", its, {its.waiter + request.owner.id, its.revoked + request.owner.id},
          {request.owner.id, mode_text(request.mode, request.slots), how.was_waiting ? "1" : "0",
           how.in_doubt ? "1" : "0"},
          deadline, cancel, how.unheard);
  if (!reply) return reply.error();
  return Removal{reply.value().at(0).number() == 1, reply.value().at(1).text};
}

Result<bool> Node::break_lock(std::string_view key, std::string_view owner_id, std::string_view why,
                              Deadline deadline, Cancel cancel) {
  const Names its = names(key);
  const std::string id(owner_id);
  const auto reply = run(kBreak, ":", its, {its.waiter + id, its.revoked + id},
                         {id, "", std::string(why)}, deadline, cancel);
  if (!reply) return reply.error();
  return reply.value().number() == 1;
}

Result<Room> Node::room(const Request& request, Deadline deadline, Cancel cancel) {
  const auto reply =
      run(kRoom, "*::", names(request.key), {},
          {request.owner.id, mode_text(request.mode, request.slots)}, deadline, cancel);
  if (!reply) return reply.error();
  Room out{.is_there = reply.value().at(0).number() == 1};
  if (const auto left = reply.value().at(1).number(-1); left >= 0) out.look_in = Millis{left};
  return out;
}

Result<LockInfo> Node::look(std::string_view key, Deadline deadline, Cancel cancel) {
  const Names its = names(key);
  const auto reply = run(kLook, kLookShape, its, {}, {"", ""}, deadline, cancel);
  if (!reply) return reply.error();
  return lock_info(key, reply.value());
}

Result<LockInfo> Node::glance(std::string_view key, const std::string& seen, Deadline deadline,
                              Cancel cancel) {
  const Names its = names(key);
  const auto reply = run(kLook, kGlanceShape, its, {}, {"", "", "1", seen}, deadline, cancel);
  if (!reply) return reply.error();
  return lock_info(key, reply.value());
}

// Of one request among many: however long all of them take, a server that has fallen silent is
// noticed.
Result<Completed> Node::complete(const Request& request, const RecordName& mark,
                                 const std::string& text, Millis remember, Deadline deadline,
                                 Cancel cancel) {
  const Names its = names(request.key);
  const auto reply = run(
      kComplete, "*:", its,
      {its.waiter + request.owner.id, its.revoked + request.owner.id, record_key(prefix_, mark)},
      {request.owner.id, "x", text, std::to_string(remember.count())}, deadline, cancel);
  if (!reply) return reply.error();
  const Reply& answer = reply.value();
  if (answer.at(0).number() == 1) return Completed{.done = true};
  return Completed{.why = answer.at(1).text, .found = answer.at(2).text};
}

Deadline Node::patience(Deadline deadline) const {
  return std::min(deadline, after(Clock::now(), address().patience));
}

Result<std::vector<std::vector<std::string>>> Node::scan(const std::vector<std::string>& patterns,
                                                         Deadline deadline, Cancel cancel) {
  struct Scan {
    std::string cursor = "0";
    std::set<std::string> seen = {};
    bool done = false;
  };
  std::vector<Scan> scans(patterns.size());
  std::vector<std::vector<std::string>> names(patterns.size());
  const auto is_done = [](const Scan& scan) { return scan.done; };
  std::size_t bytes = 0;
  unsigned asked = 0;
  while (!std::all_of(scans.begin(), scans.end(), is_done)) {
    if (bytes > kMostScannedBytes || ++asked > kMostScans) {
      return Error{Errc::unreachable,
                   address().shown +
                       ": SCAN has not ended after 256 MiB of names and cursors, or a million "
                       "replies; is it a Redis server?"};
    }
    std::vector<Command> commands;
    for (std::size_t i = 0; i < scans.size(); ++i) {
      if (scans[i].done) continue;
      commands.push_back({"SCAN", scans[i].cursor, "MATCH", patterns[i], "COUNT", kScanned});
    }
    const auto replies = connection_.ask(commands, patience(deadline), cancel);
    if (!replies) return replies.error();
    std::size_t number = 0;
    for (std::size_t i = 0; i < scans.size(); ++i) {
      Scan& scan = scans[i];
      if (scan.done) continue;
      const Reply& reply = replies.value()[number++];
      if (reply.is_error()) {
        Error error = server_error(address(), reply.text);
        if (reply.refuses("SCAN")) error.message += "; without SCAN, name a lock: dlock show KEY";
        return error;
      }
      if (!reply.is("*$*")) return connection_.unexpected_reply();
      scan.cursor = reply.at(0).text;
      scan.done = scan.cursor == "0";
      bytes += sizeof(std::string) + scan.cursor.size();
      // No server gives a cursor twice in one scan. If we followed one again, we might never end.
      if (!scan.seen.insert(scan.cursor).second) return connection_.unexpected_reply();
      for (const Reply& name : reply.at(1).items) {
        bytes += sizeof(std::string) + name.text.size();
        names[i].push_back(name.text);
      }
    }
  }
  for (auto& its : names) {
    std::sort(its.begin(), its.end());
    its.erase(std::unique(its.begin(), its.end()), its.end());
  }
  return names;
}

// The keys that are locked, and those that may only be waited for.
Result<std::vector<std::string>> Node::locks(std::string_view key_prefix, Deadline deadline,
                                             Cancel cancel) {
  const std::string start = prefix_ + std::string(key_prefix);
  const auto names = scan({glob_escape(start) + '*', "{*}:queue*"}, deadline, cancel);
  if (!names) return names.error();
  std::vector<std::string> keys;
  const auto add = [&](std::string_view lock) {
    if (!lock.starts_with(start) || belongs_to_a_lock(lock, prefix_)) return;
    keys.emplace_back(lock.substr(prefix_.size()));
  };
  for (const std::string& name : names.value()[0]) {
    if (!name.starts_with(prefix_)) return connection_.unexpected_reply();
    add(name);
  }
  for (const std::string& name : names.value()[1]) add(lock_of_queue(name));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Result<std::vector<LockInfo>> Node::list(std::string_view key_prefix, Deadline deadline,
                                         Cancel cancel) {
  const auto keys = locks(key_prefix, deadline, cancel);
  if (!keys) return keys.error();
  std::vector<LockInfo> out;
  for (std::size_t from = 0; from < keys.value().size(); from += kPortion) {
    const std::size_t to = std::min(from + kPortion, keys.value().size());
    const auto look_at_them = [&] {
      std::vector<Command> commands;
      for (std::size_t i = from; i < to; ++i) {
        // The first one brings the script; the others know it by then.
        const bool by_text = commands.empty() || lacks_evalsha_;
        commands.push_back(script_command(by_text, kLook, names(keys.value()[i]), {}, {"", ""}));
      }
      return connection_.ask(commands, patience(deadline), cancel);
    };
    auto replies = look_at_them();
    if (replies && !lacks_evalsha_ && needs_text(replies->back())) replies = look_at_them();
    if (!replies) return replies.error();
    for (std::size_t i = from; i < to; ++i) {
      const Reply& reply = replies.value()[i - from];
      if (reply.is_error()) return server_error(address(), reply.text);
      if (!reply.is(kLookShape)) return connection_.unexpected_reply();
      LockInfo info = lock_info(keys.value()[i], reply);
      // Without a prefix anything may stand there: only what is known to be a lock is shown.
      const bool is_held = !info.holders.empty();
      const bool ours = is_held ? !info.holders.front().foreign : !info.waiters->empty();
      if (ours || (is_held && !prefix_.empty())) out.push_back(std::move(info));
    }
  }
  return out;
}

}  // namespace dlock::redis
