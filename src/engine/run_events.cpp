// One last event of each key.  If one of two processes is killed, the other one writes what is
//   missing: the shared page says what is written.  If a process is killed during write(2), the
//   last event can be there twice; if both are killed, there is none.

#include "engine/run_events.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/owner_json.hpp"
#include "engine/describe.hpp"
#include "util/host.hpp"
#include "util/random_id.hpp"

namespace dlock {
namespace {

using nlohmann::ordered_json;

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

std::string urls_of(const Target& target) {
  std::string out;
  const auto add = [&](const std::string& url) { out += (out.empty() ? "" : " ") + url; };
  for (const Url& server : target.servers) add(server.redacted());
  for (const Target& shard : target.shards) add(urls_of(shard));
  return out.empty() ? target.url.redacted() : out;
}

// Without the lock id, which is secret.
ordered_json party(const std::optional<Owner>& owner) {
  if (!owner) return {};
  ordered_json out = owner_to_json(*owner);
  out.erase("id");
  return out;
}

KeyOnPage& on_page(const RunContext& context, const std::string& key) {
  const auto& keys = context.spec.keys;
  const auto at = std::find(keys.begin(), keys.end(), key) - keys.begin();
  return context.page.keys.at(static_cast<std::size_t>(at));
}

Millis::rep ms_from(Deadline start, Deadline end) {
  return std::chrono::duration_cast<Millis>(end - start).count();
}

// The last event of a lock that was not acquired.
std::string_view last_event(const Outcome& outcome) {
  if (outcome.killed) return "error";
  if (outcome.name == "done") return "skipped";
  if (outcome.name == "busy" || outcome.name == "signalled") return "gave-up";
  return outcome.name == "unreachable" ? "unreachable" : "error";
}

}  // namespace

Result<EventLog> open_event_log(const PairSpec& pair) {
  if (pair.spec.event_log.empty()) return EventLog();
  return EventLog::open(pair.spec.event_log,
                        {{"backend", urls_of(pair.target)},
                         {"run", util::random_id().substr(0, 16)},
                         {"host", util::host_name()},
                         {"pid", pair.owner.pid == 0 ? getpid() : pair.owner.pid},
                         {"user", util::user_name()},
                         {"command", base_name(pair.spec.argv.front())},
                         {"label", or_null(pair.spec.label)}});
}

void log_waiting(const RunContext& context, const std::string& key, const LockInfo& info,
                 const std::optional<Owner>& holder) {
  if (!context.event_log) return;
  context.event_log.write("waiting", key,
                          {{"holder", party(holder)},
                           {"place", or_null(info.place)},
                           {"waiters", or_null(count_waiters(info))}});
}

void log_acquired(const RunContext& context, const HeldLocks& locks) {
  if (!context.event_log) return;
  for (const auto& lock : locks.all()) {
    KeyOnPage& key = on_page(context, lock->key());
    key.borrowed = lock->borrowed();
    key.granted_at = lock->granted_at().time_since_epoch().count();
    ordered_json more{{"waited_ms", key.waited.load()},
                      {"fence", or_null(lock->fence())},
                      {"slot", or_null(lock->slot())}};
    if (context.owner.lease) more["lease_ms"] = context.owner.lease->count();
    context.event_log.write(lock->borrowed() ? "borrowed" : "acquired", lock->key(), more);
  }
}

void log_ending(const RunContext& context, int signal, const std::string& why) {
  if (!context.event_log) return;
  for (const std::string& key : context.spec.keys) {
    if (on_page(context, key).ended) continue;
    context.event_log.write("ending", key, {{"signal", signal}, {"why", why}});
  }
}

void note_loss(const RunContext& context, const std::string& key) {
  on_page(context, key).lost = true;
}

void log_end(const RunContext& context, const std::string& name, const Outcome& outcome) {
  KeyOnPage& key = on_page(context, name);
  if (!context.event_log || key.ended) return;
  ordered_json more{{"outcome", outcome.name}, {"exit_status", outcome.exit_status}};
  more["reason"] = outcome.reason.empty() ? ordered_json() : ordered_json(outcome.reason);
  if (outcome.killed) more.update({{"outcome", nullptr}, {"reason", "killed"}});
  if (!outcome.is_returned) more["exit_status"] = nullptr;
  std::string_view event = last_event(outcome);
  const Deadline granted_at{Deadline::duration(key.granted_at.load())};
  if (granted_at != Deadline{}) {
    event = key.lost ? "lost" : "released";
    more["held_ms"] = ms_from(granted_at, Clock::now());
    more["borrowed"] = key.borrowed.load();
  } else {
    const Deadline asked_at{Deadline::duration(key.asked_at.load())};
    const bool is_wanted = asked_at != Deadline{};
    more["waited_ms"] = key.waited + (is_wanted ? ms_from(asked_at, Clock::now()) : 0);
    if (event == "unreachable") more["error"] = outcome.reason;
    if (event == "gave-up") more["holder"] = is_wanted ? party(outcome.other) : ordered_json();
    if (event == "skipped") more["done_by"] = party(outcome.other);
  }
  context.event_log.write(event, name, more);
  key.ended = true;
}

void log_end(const RunContext& context, const Outcome& outcome) {
  for (const std::string& key : context.spec.keys) log_end(context, key, outcome);
  context.event_log.close();
}

}  // namespace dlock
