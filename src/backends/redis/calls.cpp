#include "backends/redis/calls.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace dlock::redis {
namespace {

constexpr std::int64_t kMostMs = 86'400'000;

std::string flag(bool is_set) { return is_set ? "1" : "0"; }
std::string in_ms(Millis duration) { return std::to_string(duration.count()); }
std::string number_text(unsigned number) { return number > 0 ? std::to_string(number) : ""; }

std::uint64_t count(const Reply& reply) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(reply.number(), 0));
}
unsigned small_count(const Reply& reply) {
  return static_cast<unsigned>(std::min<std::uint64_t>(count(reply), UINT32_MAX));
}

// The keys and arguments that all scripts have.
ScriptCall begin(const Script& script, std::string_view shape, const Names& names,
                 const std::string& id, unsigned round, const std::string& mode) {
  return {&script,
          {names.lock, names.counter, names.owner, names.queue},
          {id, std::to_string(round), mode, names.channels, names.waiter},
          shape};
}
ScriptCall begin(const Script& script, std::string_view shape, const WaiterId& waiter,
                 unsigned round) {
  return begin(script, shape, waiter.names, waiter.id, round, waiter.mode);
}

// Those that ask.lua and vote.lua have in common.
template <class Answer>
void take_other_refusal(Answer& out, const Reply& reply) {
  const std::string& why = reply.at(1).text;
  if (why == "duplicate") {
    out.kind = Answer::Kind::duplicate;
    out.duplicate = small_count(reply.at(2));
  } else if (why == "void") {
    out.kind = Answer::Kind::given_up;
  }
}

void add(std::vector<std::string>& list, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(list));
}

}  // namespace

std::optional<GrantId> parse_grant_id(std::string_view id) {
  constexpr std::size_t kDigits = 32;
  const std::string_view waiter = id.substr(0, id.find(':'));
  const bool is_hex = waiter.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (waiter.size() != kDigits || !is_hex) return std::nullopt;
  if (waiter.size() == id.size()) return GrantId{std::string(waiter), 0};
  const auto round = util::parse_int(id.substr(kDigits + 1), 1, INT32_MAX);
  if (!round) return std::nullopt;
  return GrantId{std::string(waiter), static_cast<unsigned>(*round)};
}

bool is_offer(std::string_view id) {
  const auto parts = parse_grant_id(id);
  return parts && parts->round == 0;
}

ScriptCall call(const WaiterId& waiter, unsigned round, const Ask& ask) {
  ScriptCall out = begin(kAsk, "*:$", waiter, round);
  add(out.keys, {waiter.names.waiter + waiter.id, waiter.names.given_up + waiter.id});
  add(out.arguments, {in_ms(ask.ttl), ask.record, flag(ask.join),
                      std::to_string(std::max<std::int64_t>(ask.waited.count(), 0)), ask.server,
                      ask.seen, flag(ask.polls)});
  return out;
}

AskAnswer ask_answer(const Reply& reply) {
  using Kind = AskAnswer::Kind;
  AskAnswer out;
  if (reply.at(0).number() == 1) {
    out.kind = Kind::granted;
    out.token = count(reply.at(1));
    out.number = small_count(reply.at(2));
    out.taken = reply.at(3).text;
    return out;
  }
  const std::string& why = reply.at(1).text;
  if (why == "held") {
    out.kind = Kind::held;
    out.ask_in = Millis{std::clamp<std::int64_t>(reply.at(2).number(), 0, kMostMs)};
    out.place = static_cast<int>(std::clamp<std::int64_t>(reply.at(3).number(-1), -1, INT32_MAX));
    out.waiting = small_count(reply.at(4));
    out.holders = std::max(small_count(reply.at(5)), 1U);
    out.token = count(reply.at(6));
    out.holder = reply.at(7).text;
    if (const auto left = reply.at(8).number(-1); left >= 0) out.left = Millis{left};
    out.record = reply.at(9).text;
  } else if (why == "mode") {
    out.kind = Kind::other_mode;
    out.mode = reply.at(2).text;
    out.token = count(reply.at(3));
  } else {
    take_other_refusal(out, reply);
  }
  return out;
}

ScriptCall call(const WaiterId& waiter, unsigned round, const VoteRequest& request) {
  ScriptCall out = begin(kVote, "*:", waiter, round);
  add(out.keys, {waiter.names.given_up + waiter.id});
  add(out.arguments,
      {in_ms(std::max(request.ttl, Millis{1})), request.record, std::to_string(request.token),
       number_text(request.number), request.server, flag(request.again)});
  return out;
}

VoteAnswer vote_answer(const Reply& reply) {
  using Kind = VoteAnswer::Kind;
  VoteAnswer out;
  const std::string& why = reply.at(1).text;
  if (reply.at(0).number() == 1) {
    out.kind = Kind::yes;
  } else if (why == "held") {
    out.kind = Kind::held;
    out.mode = reply.at(2).text;
    out.holder = reply.at(3).text;
    out.record = reply.at(4).text;
  } else if (why == "overtaken") {
    out.kind = Kind::overtaken;
    out.token = count(reply.at(2));
  } else if (why == "taken") {
    out.kind = Kind::taken;
    out.taken = reply.at(2).text;
    out.token = count(reply.at(3));
  } else if (why == "kept") {
    out.kind = Kind::kept;
  } else {
    take_other_refusal(out, reply);
  }
  return out;
}

ScriptCall call(const WaiterId& waiter, unsigned round, const Leave& leave) {
  ScriptCall out = begin(kLeave, "*:", waiter, round);
  add(out.keys, {waiter.names.waiter + waiter.id, waiter.names.given_up + waiter.id,
                 waiter.names.revoked + waiter.grant_id(round)});
  add(out.arguments, {flag(leave.final), flag(leave.in_doubt), flag(leave.quiet)});
  return out;
}

LeaveAnswer leave_answer(const Reply& reply) {
  return {.was_held = reply.at(0).number() == 1, .why = reply.at(1).text};
}

ScriptCall call(const WaiterId& waiter, unsigned round, const Renew& renew) {
  ScriptCall out = begin(kRenew, "*:", waiter, round);
  add(out.keys, {waiter.names.revoked + waiter.grant_id(round)});
  add(out.arguments, {in_ms(renew.ttl), renew.record, renew.server});
  return out;
}

RenewAnswer renew_answer(const Reply& reply) {
  using Kind = RenewAnswer::Kind;
  RenewAnswer out;
  const std::int64_t what = reply.at(0).number();
  if (what == 1) {
    out.kind = Kind::renewed;
    out.had_no_ttl = reply.at(1).number() == -1;
  } else if (what == 2) {
    out.kind = Kind::duplicate;
    out.duplicate = small_count(reply.at(1));
  } else {
    out.kind = reply.at(2).text == "none" ? Kind::free : Kind::held_by_another;
    out.why = reply.at(1).text;
  }
  return out;
}

ScriptCall break_call(const Names& names, std::string_view holder, const std::string& why) {
  const GrantId id = parse_grant_id(holder).value_or(GrantId{});
  const std::string shown(holder);
  ScriptCall out = begin(kBreak, ":", names, id.waiter, id.round, "");
  add(out.keys, {names.revoked + shown, names.given_up + id.waiter});
  add(out.arguments, {shown, why});
  return out;
}

ScriptCall complete_call(const WaiterId& waiter, unsigned round, const std::string& mark,
                         const std::string& text, Millis remember) {
  ScriptCall out = begin(kComplete, "*:", waiter, round);
  add(out.keys, {waiter.names.revoked + waiter.grant_id(round), mark});
  add(out.arguments, {text, in_ms(remember)});
  return out;
}

ScriptCall look_call(const Names& names) { return begin(kLook, "*$:$**", names, "", 0, ""); }

Message parse_message(std::string_view text) {
  constexpr std::string_view kLater = "look ";
  if (text == "go") return {Message::Kind::ask, Millis{0}};
  if (text == "revoked") return {Message::Kind::revoked, Millis{0}};
  if (!text.starts_with(kLater)) return {};
  const auto ms = util::parse_int(text.substr(kLater.size()), 0, kMostMs);
  return ms ? Message{Message::Kind::ask, Millis{*ms}} : Message{};
}

}  // namespace dlock::redis
