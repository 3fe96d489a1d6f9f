// RedisModel against redis-server, whose clock is stopped and set by the test: the shipped scripts,
// with arguments by chance, on what they and other programs have left there.  After each call both
// have given the same answer, told the same listeners, and hold the same keys until the same
// millisecond.
//
// A test that fails tells its seed:  TEST_SIM_SEED=seed dlock-sim --gtest_filter=RedisModel.*

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include "backends/redis/calls.hpp"
#include "backends/redis/connection.hpp"
#include "backends/redis/names.hpp"
#include "backends/redis/scripts.hpp"
#include "script_server.hpp"
#include "support/fake_clock.hpp"
#include "support/redis_server.hpp"

namespace dlock::sim {
namespace {

using redis::Command;
using redis::Reply;

constexpr Millis kPatience{20'000};
constexpr std::chrono::microseconds kBeginning{1'800'000'000'123'456};
constexpr int kStepsOfASeed = 300;
constexpr std::array<const char*, 4> kIds{"0123456789abcdef0123456789abcdef",
                                          "11111111111111111111111111111111",
                                          "fedcba9876543210fedcba9876543210", "someone-else"};

// As RedisModel::contents() prints it.
constexpr const char* kContents = R"lua(
local out = {}
local names = redis.call('KEYS', '*')
table.sort(names)
for _, name in ipairs(names) do
  local kind, text = redis.call('TYPE', name).ok, ''
  if kind == 'string' then
    text = ' ' .. redis.call('GET', name)
  elseif kind == 'zset' then
    local all = redis.call('ZRANGE', name, 0, -1, 'WITHSCORES')
    for i = 1, #all, 2 do text = text .. ' ' .. all[i] .. ':' .. all[i + 1] end
  else
    local fields, of = redis.call('HKEYS', name), {}
    table.sort(fields)
    for _, field in ipairs(fields) do
      text = text .. ' ' .. field .. '=' .. redis.call('HGET', name, field)
    end
  end
  out[#out + 1] = name .. ' =' .. text .. ' until ' ..
    string.format('%.0f', redis.call('PEXPIRETIME', name)) .. '\n'
end
return table.concat(out)
)lua";

// Of errors only the code counts: a server adds where in the script it was.
std::string shown(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      return "nil";
    case Reply::Kind::integer:
      return std::to_string(reply.integer);
    case Reply::Kind::text:
      return '"' + reply.text + '"';
    case Reply::Kind::error:
      return "error " + reply.text.substr(0, reply.text.find(' '));
    case Reply::Kind::array:
      break;
  }
  std::string out = "[";
  for (const Reply& item : reply.items) out += shown(item) + ' ';
  return out + ']';
}

struct Call {
  const redis::Script* script = nullptr;  // null: a command
  std::vector<std::string> keys = {};
  std::vector<std::string> words = {};  // the arguments, or the command
};

std::string shown(const Call& call) {
  std::string out = call.script == nullptr ? "" : std::string(call.script->name);
  for (const std::string& word : call.words) out += " '" + word + "'";
  return out;
}

class RedisModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::RedisServer::available()) GTEST_SKIP() << "redis-server is not installed";
    clock_.stop_at(now_);
    server_.emplace(test::RedisOptions{.clock = &clock_});
    redis::Address address;
    address.host = {"127.0.0.1", static_cast<std::uint16_t>(server_->port())};
    address_ = address;
    connection_.emplace(address);
  }

  // --- chance
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  template <class List>
  std::string one_of(const List& list) {
    return std::string(*(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list)))));
  }
  std::string number(std::size_t low, std::size_t high) {
    return std::to_string(low + below(high - low + 1));
  }
  std::string ttl() { return one_of(std::array{"1", "1000", "3000", "30000"}); }
  std::string mode() { return one_of(std::array{"x", "x", "x", "s", "s", "n1", "n2", "n3"}); }
  std::string id() { return kIds.at(below(3)); }
  std::string seat() { return one_of(std::array{"", "", "0", "1"}); }

  Call script_call();
  Call foreign_command();
  void random_step();

  // --- both
  Reply real(const std::vector<Command>& commands) {
    const auto replies = connection_->ask(commands, after(Clock::now(), kPatience), Cancel());
    if (!replies) throw std::runtime_error(replies.error().message);
    return replies.value().back();
  }
  void set_clock() {
    clock_.stop_at(now_);
    model_.data().set_clock(static_cast<std::uint64_t>(now_.count()));
  }
  void listen(const std::string& channel);
  void stop_listening();
  using Message = std::pair<std::string, std::string>;
  std::multiset<Message> heard();
  void compare(const Call& call);
  void run(std::uint64_t seed);
  bool has_seen_all() const;

  std::mt19937_64 random_;
  std::chrono::microseconds now_ = kBeginning;
  test::FakeClock clock_;
  std::optional<test::RedisServer> server_;
  redis::Address address_;
  std::optional<redis::Connection> connection_;
  struct Listener {
    std::string channel;
    std::unique_ptr<redis::Connection> connection;
  };
  std::vector<Listener> listeners_;
  ScriptServer model_;
  const redis::Names names_ = redis::names_of("dlock:", "job");
  std::set<std::string> outcomes_;
};

Call RedisModelTest::script_call() {
  const redis::WaiterId waiter{.id = id(), .mode = mode(), .names = names_};
  const auto round = static_cast<unsigned>(1 + below(4));
  const std::string server = seat();
  const unsigned slot = waiter.mode[0] == 'n' ? static_cast<unsigned>(1 + below(3)) : 0;
  const std::uint64_t token = std::stoull(number(1, 4) + "80000000012" + number(0, 9));
  std::string record = R"({"id":")" + waiter.grant_id(round) + R"(","held_ms":)" + number(0, 9) +
                       R"(,"slots":)" + (slot > 0 ? waiter.mode.substr(1) : "1") +
                       (server.empty() ? "" : R"(,"node":)" + server) + '}';
  const std::string with_token =
      record.substr(0, record.size() - 1) + ",\"fence\":" + std::to_string(token) + '}';
  const Millis its_ttl{std::stol(ttl())};
  const auto make = [&]() -> redis::ScriptCall {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return call(waiter, round,
                    redis::Ask{.ttl = its_ttl,
                               .record = record,
                               .join = chance(0.7),
                               .waited = std::chrono::microseconds(below(10'000'000)),
                               .server = server,
                               .seen = chance(0.3) ? id() : "",
                               .polls = chance(0.1)});
      case 4:
      case 5:
        return call(waiter, round,
                    redis::VoteRequest{.ttl = its_ttl,
                                       .record = with_token,
                                       .token = token,
                                       .number = slot,
                                       .server = server,
                                       .again = chance(0.3)});
      case 6:
      case 7:
        return call(
            waiter, round,
            redis::Leave{.final = chance(0.5), .in_doubt = chance(0.1), .quiet = chance(0.2)});
      case 8:
        return call(waiter, round,
                    redis::Renew{.ttl = its_ttl, .record = with_token, .server = server});
      case 9:
        return redis::break_call(names_, chance(0.5) ? waiter.grant_id(round) : one_of(kIds),
                                 "why");
      case 10:
        return redis::complete_call({.id = waiter.id, .mode = "x", .names = names_}, round,
                                    "dlock:mark", record, Millis{60'000});
      default:
        return redis::look_call(names_);
    }
  };
  redis::ScriptCall out = make();
  return {out.script, std::move(out.keys), std::move(out.arguments)};
}

// What other programs and operators do to these names.
Call RedisModelTest::foreign_command() {
  const auto at = [](auto... words) { return Call{.words = {std::string(words)...}}; };
  const std::array names{names_.lock, names_.owner, names_.queue, names_.counter,
                         names_.waiter + id()};
  const std::string name = chance(0.5) ? names_.lock : one_of(names);
  switch (below(10)) {
    case 0:
      return at("DEL", name);
    case 1:
      return at("PEXPIRE", name, ttl());
    case 2:
      return at("PERSIST", name);
    case 3:
      return at("SET", name, one_of(kIds), "PX", ttl());
    case 4:
      return at("HSET", name, "mode", one_of(std::array{"read", "write"}));
    case 5:
      return at("HSET", name, one_of(kIds), "1");
    case 6:
      return at("ZADD", name, std::to_string(now_.count() / 1'000 + 1'000), one_of(kIds));
    case 7:
      return at("SET", name, number(0, 3));
    case 8:
      return at("SET", names_.counter, "9223372036854775807");
    default:
      return at("SET", name, "no number");
  }
}

void RedisModelTest::listen(const std::string& channel) {
  auto its = std::make_unique<redis::Connection>(address_);
  const auto done =
      its->ask(Command{"SUBSCRIBE", channel}, after(Clock::now(), kPatience), Cancel());
  ASSERT_TRUE(done) << done.error().message;
  listeners_.push_back({channel, std::move(its)});
  model_.data().listen(channel);
}

void RedisModelTest::stop_listening() {
  if (listeners_.empty()) return;
  const std::string channel = listeners_.back().channel;
  const auto count = [&] { return real({{"PUBSUB", "NUMSUB", channel}}).at(1).number(); };
  const std::int64_t before = count();
  listeners_.pop_back();
  while (count() == before) continue;
  model_.data().stop_listening(channel);
}

// By each listener.
std::multiset<RedisModelTest::Message> RedisModelTest::heard() {
  std::multiset<Message> out;
  for (const Listener& listener : listeners_) {
    unsigned reads = 1'000;
    for (;;) {
      auto push = listener.connection->receive_now(reads);
      if (!push || !push->has_value()) break;
      out.emplace(push->value().at(1).text, push->value().at(2).text);
    }
  }
  return out;
}

void RedisModelTest::compare(const Call& call) {
  std::vector<Command> commands;
  Reply ours;
  if (call.script == nullptr) {
    commands.push_back(call.words);
    ours = model_.data().call(call.words).reply;
  } else {
    Command eval{"EVAL", std::string(call.script->text), std::to_string(call.keys.size())};
    eval.insert(eval.end(), call.keys.begin(), call.keys.end());
    eval.insert(eval.end(), call.words.begin(), call.words.end());
    commands.push_back(std::move(eval));
    ours = model_.eval(call.script->text, call.keys, call.words);
  }
  const Reply its = real(commands);
  ASSERT_EQ(shown(ours), shown(its)) << shown(call) << '\n' << its.text;
  ASSERT_EQ(model_.data().contents(), real({{"EVAL", kContents, "0"}}).text) << shown(call);
  std::multiset<Message> told;
  for (const Message& message : model_.data().take_messages()) {
    for (const Listener& listener : listeners_) {
      if (listener.channel == message.first) told.insert(message);
    }
  }
  ASSERT_EQ(told, heard()) << shown(call);
  if (call.script != nullptr) {
    const std::int64_t outcome = (its.items.empty() ? its : its.at(0)).number(-1);
    outcomes_.insert(std::string(call.script->name) + ' ' + std::to_string(outcome));
  }
}

void RedisModelTest::random_step() {
  if (chance(0.15)) {
    now_ += std::chrono::microseconds(chance(0.5)   ? below(3'000)
                                      : chance(0.9) ? below(5'000'000)
                                                    : below(700'000'000));
    set_clock();
  }
  if (chance(0.1)) listen(names_.channels + id());
  if (chance(0.05) || listeners_.size() > 4) stop_listening();
  compare(chance(0.12) ? foreign_command() : script_call());
}

void RedisModelTest::run(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  now_ = kBeginning;
  set_clock();
  real({{"FLUSHALL"}});
  model_.data().forget();
  for (int step = 0; step < kStepsOfASeed && !HasFatalFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    random_step();
  }
}

// Each script has done what it is for, and has refused to.
bool RedisModelTest::has_seen_all() const {
  constexpr std::array kScripts{"ask", "break", "complete", "leave", "renew", "vote"};
  return std::all_of(kScripts.begin(), kScripts.end(), [this](const std::string& script) {
    return outcomes_.contains(script + " 0") && outcomes_.contains(script + " 1");
  });
}

// For at least so long, and until all has been seen.
TEST_F(RedisModelTest, AnswersAsARealServerDoes) {
  const char* const wanted = std::getenv("TEST_SIM_SEED");
  if (wanted != nullptr) return run(std::strtoull(wanted, nullptr, 10));
  const bool is_soak = std::getenv("TEST_SOAK") != nullptr;
  const Deadline until = after(Clock::now(), is_soak ? Millis{600'000} : Millis{20'000});
  std::uint64_t seed = std::random_device()();
  while ((Clock::now() < until || !has_seen_all()) && !HasFatalFailure()) run(seed++);
}

}  // namespace
}  // namespace dlock::sim
