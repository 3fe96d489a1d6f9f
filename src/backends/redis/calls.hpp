// What is asked of a server by the scripts of lua/, and what it answers: their arguments and
// replies in the types of C++, without I/O.  The scripts say what each of them does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/names.hpp"
#include "backends/redis/reply.hpp"
#include "backends/redis/scripts.hpp"
#include "util/clock.hpp"

namespace dlock::redis {

/// A request: a script, the keys that it uses, and its arguments.  An answer has the shape `shape`
/// (Reply::is()), or is an error.
struct ScriptCall {
  const Script* script = nullptr;
  std::vector<std::string> keys;
  std::vector<std::string> arguments;
  std::string_view shape;
};

/// One acquire() of one client, and what comes of it.
struct WaiterId {
  std::string id;    // 32 hex digits
  std::string mode;  // mode_text()
  Names names;

  /// The id of the grant that this round has asked for: "0f3a...:4".
  std::string grant_id(unsigned round) const { return id + ':' + std::to_string(round); }
};

/// The parts of a grant's id; an offer has round 0.  None for what dlock has not written.
struct GrantId {
  std::string waiter;
  unsigned round = 0;
};
std::optional<GrantId> parse_grant_id(std::string_view id);
/// The id of a waiter alone: the lock is offered to it.
bool is_offer(std::string_view id);

struct Ask {
  Millis ttl{0};
  std::string record;  // of the grant, without token and number
  bool join = false;   // the queue, if it is not granted
  std::chrono::microseconds waited{0};
  std::string server;  // its number in the client's list; "" if it is the only one
  std::string seen;    // the waiter that was seen to hold the lock, or ""
  bool polls = false;  // no message reaches the waiter, which asks twice a second
};

struct AskAnswer {
  enum class Kind : std::uint8_t {
    granted,
    held,        // by others; or another is first
    other_mode,  // held in `mode`, which cannot be mixed with what was asked for
    duplicate,   // granted before under another number of the list, `duplicate`
    given_up,    // this waiter was given up, or broken: nothing will be granted to it
    late,        // a later round of this waiter was here before
  };
  Kind kind = Kind::late;
  /// granted: the fencing token, 0 if the counter is none.  held, other_mode: no token up to this
  /// one is new.
  std::uint64_t token = 0;
  // granted, of slots
  unsigned number = 0;
  std::string taken;  // the numbers that others have: "101" are 1 and 3
  // held
  Millis ask_in{0};
  int place = -1;  // in the queue; 0 is next; -1: not in it
  unsigned waiting = 0;
  unsigned holders = 1;
  std::string holder;          // the id of one; without a round the lock is offered to it
  std::optional<Millis> left;  // until it ends; none: it never does
  std::string record;          // "": another program has the lock
  std::string mode;
  unsigned duplicate = 0;
};

ScriptCall call(const WaiterId& waiter, unsigned round, const Ask& ask);
AskAnswer ask_answer(const Reply& reply);

struct VoteRequest {
  Millis ttl{0};       // again: what is left of the lease
  std::string record;  // with token and number, the token last
  std::uint64_t token = 0;
  unsigned number = 0;  // of slots; 0: none
  std::string server;   // its number in the client's list
  bool again = false;   // the lease is held; this server may have lost its data
};

struct VoteAnswer {
  enum class Kind : std::uint8_t {
    yes,
    held,       // by another; `mode`, `holder` and `record` as in AskAnswer
    overtaken,  // it is granted, but another has `token`, so it is no vote for ours
    taken,      // the number: others have `taken`, and the last token is `token`
    duplicate,
    given_up,
    late,
    kept,  // again: this server has not lost its data
  };
  Kind kind = Kind::late;
  std::uint64_t token = 0;
  std::string taken;
  std::string mode;
  std::string holder;
  std::string record;
  unsigned duplicate = 0;
};

ScriptCall call(const WaiterId& waiter, unsigned round, const VoteRequest& request);
VoteAnswer vote_answer(const Reply& reply);

struct Leave {
  bool final = false;     // the waiter will not ask again: out of the queue
  bool in_doubt = false;  // final, and something that it has asked may still arrive
  bool quiet = false;     // not final: the waiter asks again at once, so nobody is offered the lock
};

struct LeaveAnswer {
  bool was_held = false;
  std::string why;  // not held: what a force-release said
};

ScriptCall call(const WaiterId& waiter, unsigned round, const Leave& leave);
LeaveAnswer leave_answer(const Reply& reply);

struct Renew {
  Millis ttl{0};
  std::string record;  // with token and number, the token last
  std::string server;  // its number in the client's list; "" if it is the only one
};

struct RenewAnswer {
  enum class Kind : std::uint8_t { renewed, free, held_by_another, duplicate };
  Kind kind = Kind::held_by_another;
  bool had_no_ttl = false;  // renewed: somebody had made it endless
  std::string why;          // lost: what a force-release said
  unsigned duplicate = 0;
};

ScriptCall call(const WaiterId& waiter, unsigned round, const Renew& renew);
RenewAnswer renew_answer(const Reply& reply);

/// Breaks the lock of `holder`, an id that look() has shown.  The answer is 1 if it had the lock.
ScriptCall break_call(const Names& names, std::string_view holder, const std::string& why);

/// `mark`: the key of the record, `text` what it says, for `remember`.
ScriptCall complete_call(const WaiterId& waiter, unsigned round, const std::string& mark,
                         const std::string& text, Millis remember);

/// All that is known of a lock.
ScriptCall look_call(const Names& names);

/// What a waiter hears on its channel.
struct Message {
  enum class Kind : std::uint8_t { ask, revoked, other };
  Kind kind = Kind::other;
  Millis in{0};  // ask: when
};
Message parse_message(std::string_view text);

}  // namespace dlock::redis
