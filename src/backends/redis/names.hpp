// What a lock and what belongs to it are called on a Redis server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records.hpp"

namespace dlock::redis {

inline constexpr std::string_view kDefaultPrefix = "dlock:";

/// All in one cluster slot wherever a hash tag allows it.
struct Names {
  std::string lock;      // prefix + key: where every other lock library has it too
  std::string counter;   // of the grants
  std::string owner;     // the record of the holder
  std::string queue;     // of the waiters
  std::string waiter;    // + id: the record of a waiter
  std::string revoked;   // + id: why a holder lost it
  std::string given_up;  // + id: a waiter that nothing may be granted to any more
  std::string channels;  // + id: where a waiter is called, and a holder hears that it lost the lock
};
Names names_of(std::string_view prefix, std::string_view key);

/// Where a record is.  No lock and no other record has that name.
std::string record_key(std::string_view prefix, const RecordName& name);
/// The mark that is there; none if it is no such name, or has another prefix.
std::optional<RecordName> mark_of_key(std::string_view name, std::string_view prefix);

/// The lock whose queue has this name; "" if it is no queue.
std::string lock_of_queue(std::string_view name);

/// True for the names that are not locks but belong to one whose name begins with `prefix`, or to
/// `dlock id`.
bool belongs_to_a_lock(std::string_view name, std::string_view prefix);

/// `text` as a pattern of SCAN that matches nothing else.
std::string glob_escape(std::string_view text);

}  // namespace dlock::redis
