#include "backends/redis/node.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "backends/redis/look.hpp"
#include "backends/redis/sentinel.hpp"

namespace dlock::redis {
namespace {

// So many locks are looked at in one request: a reply stays small, and a round trip is worth it.
constexpr std::size_t kPortion = 100;
// Of all names that a scan finds, and its cursors.  A million locks take less than half as much.
constexpr std::size_t kMostScannedBytes = std::size_t{256} * 1024 * 1024;
// Each looks at kScanned keys: enough for a billion.
constexpr unsigned kMostScans = 1'000'000;
constexpr const char* kScanned = "1000";
constexpr Millis kToReplicate{1'000};

Command script_command(bool by_text, const ScriptCall& call) {
  Command out{by_text ? "EVAL" : "EVALSHA",
              std::string(by_text ? call.script->text : call.script->sha1),
              std::to_string(call.keys.size())};
  out.insert(out.end(), call.keys.begin(), call.keys.end());
  out.insert(out.end(), call.arguments.begin(), call.arguments.end());
  return out;
}

}  // namespace

Node::Node(Address address, std::string prefix, bool is_one_of_several)
    : connection_(std::move(address)),
      prefix_(std::move(prefix)),
      is_one_of_several_(is_one_of_several) {}

Result<Reply> Node::run(const ScriptCall& call, Deadline deadline, Cancel cancel, bool by_text) {
  const Millis to_answer = std::max(remaining(deadline), Millis{1});
  const auto start_to_count = [&] {
    if (is_one_of_several_) deadline = after(Clock::now(), to_answer);
  };
  if (is_one_of_several_) {
    const Deadline connected = after(Clock::now(), std::max(address().patience, to_answer));
    if (auto ok = connection_.connect(connected, cancel); !ok) return ok.error();
    start_to_count();
  }
  by_text = by_text || lacks_evalsha_;
  auto reply = connection_.ask(script_command(by_text, call), deadline, cancel);
  if (!by_text && reply && needs_text(*reply)) {
    start_to_count();
    reply = connection_.ask(script_command(true, call), deadline, cancel);
  }
  if (!reply || reply->is(call.shape)) return reply;
  if (!reply->is_error()) return connection_.unexpected_reply();
  return server_error(address(), reply->text);
}

// The answer to a script that was named by its SHA-1.
bool Node::needs_text(const Reply& reply) {
  if (reply.refuses("EVALSHA")) lacks_evalsha_ = true;
  return lacks_evalsha_ || reply.says("NOSCRIPT");
}

Result<void> Node::replicated(Deadline deadline, Cancel cancel) {
  const unsigned wanted = address().sentinels ? address().sentinels->replicas.value_or(0) : 0;
  if (wanted == 0) return {};
  const unsigned before = connection();
  const Millis time = std::clamp(remaining(deadline) / 2, Millis{1}, kToReplicate);
  auto reply = connection_.ask(
      Command{"WAIT", std::to_string(wanted), std::to_string(time.count())}, deadline, cancel);
  if (!reply) return reply.error();
  if (reply->is_error()) return server_error(address(), reply->text);
  // Over another connection it would say how many there are, whatever they have.
  const std::int64_t count = connection() == before ? reply->number() : 0;
  if (count >= wanted) return {};
  return Error{Errc::unreachable, address().shown + ": " + std::to_string(count) + " of " +
                                      std::to_string(wanted) +
                                      " replicas have confirmed it (wait_replicas in the URL)"};
}

Result<LockInfo> Node::look(std::string_view key, Deadline deadline, Cancel cancel) {
  const auto reply = run(look_call(names(key)), deadline, cancel);
  if (!reply) return reply.error();
  return lock_info(key, reply.value());
}

// Of one request among many: however long all of them take, a server that has fallen silent is
// noticed.
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
    std::vector<ScriptCall> calls;
    for (std::size_t i = from; i < to; ++i) calls.push_back(look_call(names(keys.value()[i])));
    const auto look_at_them = [&] {
      std::vector<Command> commands;
      for (const ScriptCall& call : calls) {
        // The first one brings the script; the others know it by then.
        const bool by_text = commands.empty() || lacks_evalsha_;
        commands.push_back(script_command(by_text, call));
      }
      return connection_.ask(commands, patience(deadline), cancel);
    };
    auto replies = look_at_them();
    if (replies && !lacks_evalsha_ && needs_text(replies->back())) replies = look_at_them();
    if (!replies) return replies.error();
    for (std::size_t i = from; i < to; ++i) {
      const Reply& reply = replies.value()[i - from];
      if (reply.is_error()) return server_error(address(), reply.text);
      if (!reply.is(calls[i - from].shape)) return connection_.unexpected_reply();
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
