#include "redlock_node.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "backends/redis/record.hpp"

namespace dlock::sim {
namespace {

constexpr int kDigits = 16;

std::string name_of(Id id) {
  std::array<char, kDigits + 1> out{};
  std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(id));
  return out.data();
}

std::uint64_t count(const redis::Reply& reply) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(reply.number(), 0));
}

}  // namespace

Node::Node(const Options& options) : options_(options) {
  for (const ScriptBug& bug : options.bugs) {
    std::string_view& text = texts_.emplace(bug.script, bug.script->text).first->second;
    text = with_bug(text, bug);
  }
}

std::string Node::mode_text(Mode mode) const { return redis::mode_text(mode, options_.slots); }

// As the scripts look for it.
std::string Node::record(Id id, std::uint64_t token, unsigned slot) const {
  std::string out = R"({"id":")" + name_of(id) + '"';
  if (slot > 0) out += ",\"slot\":" + std::to_string(slot);
  if (options_.number) {
    out += R"(,"servers":"0","node":)" + std::to_string(*options_.number);
  }
  if (token > 0) out += ",\"fence\":" + std::to_string(token);
  return out + '}';
}

void Node::set_clock(Deadline now) {
  const auto time =
      kBeginning + std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch());
  now_ms_ = time / Millis{1};
  server_.data().set_clock(static_cast<std::uint64_t>(time.count()));
}

redis::Reply Node::run(const redis::Script& script, Id id, Mode mode, const Words& more_keys,
                       const Words& arguments) {
  const std::string own = name_of(id);
  Words keys{names_.lock, names_.counter, names_.owner, names_.queue};
  for (const std::string& name : more_keys) keys.push_back(name + own);
  Words all{own, mode_text(mode), names_.channels, names_.waiter};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto before = server_.data().holders(names_.lock);
  const auto bug = texts_.find(&script);
  const redis::Reply reply =
      server_.eval(bug == texts_.end() ? script.text : bug->second, keys, all);
  if (reply.is_error()) throw std::logic_error(reply.text);
  asked_[own] = now_ms_;
  const auto after = server_.data().holders(names_.lock);
  for (const auto& holder : before) {
    const bool is_there = std::find(after.begin(), after.end(), holder) != after.end();
    if (holder.id != own && !is_there) changed_foreign_ = true;
  }
  for (const auto& holder : after) {
    if (holder.ends - asked_[holder.id] > options_.ttl.count()) kept_too_long_ = true;
  }
  return reply;
}

Node::Granted Node::grant(Id id, Mode mode, bool wants_number, Deadline now) {
  set_clock(now);
  const std::string number = options_.number ? std::to_string(*options_.number) : "";
  const auto reply = run(redis::kAcquire, id, mode, {names_.waiter, names_.revoked},
                         {std::to_string(options_.ttl.count()), record(id, 0, 0), "once", "0", "",
                          number, wants_number && mode == Mode::slots ? "1" : "0"});
  Granted out{.yes = reply.at(0).number() == 1};
  if (!out.yes) return out;
  out.counter = count(reply.at(1));
  out.given = static_cast<unsigned>(count(reply.at(options_.number ? 3 : 2)));
  out.taken = reply.at(4).text;
  return out;
}

Node::Written Node::write(Id id, Mode mode, std::uint64_t token, unsigned slot, Deadline now) {
  set_clock(now);
  const auto reply =
      run(redis::kFence, id, mode, {},
          {std::to_string(token), record(id, 0, slot), slot > 0 ? std::to_string(slot) : ""});
  return {.yes = reply.at(0).number() == 1,
          .overtaken = reply.at(1).text == "overtaken",
          .taken = reply.at(1).text == "taken",
          .counter = count(reply.at(2))};
}

Node::Renewed Node::renew(Id id, Mode mode, std::uint64_t token, unsigned slot, Deadline now) {
  set_clock(now);
  const auto reply = run(redis::kRenew, id, mode, {names_.revoked},
                         {std::to_string(options_.ttl.count()), record(id, token, slot),
                          options_.number ? std::to_string(*options_.number) : "",
                          slot > 0 ? std::to_string(slot) : ""});
  return {.yes = reply.at(0).number() == 1, .taken = reply.at(2).text == "number"};
}

bool Node::remove(Id id, Mode mode, Deadline now) {
  set_clock(now);
  return run(redis::kRelease, id, mode, {names_.waiter, names_.revoked}, {"0", "0"})
             .at(0)
             .number() == 1;
}

bool Node::give_again(Id id, Mode mode, std::uint64_t token, unsigned slot, Millis rest,
                      Deadline now) {
  set_clock(now);
  return run(redis::kAgain, id, mode, {names_.revoked},
             {std::to_string(std::max<std::int64_t>(rest.count(), 1)), record(id, token, slot),
              std::to_string(token), slot > 0 ? std::to_string(slot) : ""})
             .at(0)
             .number() == 1;
}

// Number and holder, one after the other.
Node::Words Node::numbers() {
  Words out;
  const redis::Reply scanned = ask({"HSCAN", names_.owner, "0", "MATCH", "#*"});
  for (const redis::Reply& word : scanned.at(1).items) out.push_back(word.text);
  return out;
}

unsigned Node::number_of(Id id) {
  const Words all = numbers();
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    if (all[i + 1] == name_of(id)) return static_cast<unsigned>(std::stoul(all[i].substr(1)));
  }
  return 0;
}

bool Node::has_no_two_numbers() {
  std::set<std::string> seen;
  const Words all = numbers();
  if (all.empty()) return true;
  std::set<std::string> members;
  for (const auto& holder : server_.data().holders(names_.lock)) members.insert(holder.id);
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    if (members.contains(all[i + 1]) && !seen.insert(all[i + 1]).second) return false;
  }
  return true;
}

}  // namespace dlock::sim
