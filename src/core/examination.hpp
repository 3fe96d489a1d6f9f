// What a backend contributes to `dlock doctor`: what it finds out about its servers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.hpp"
#include "core/result.hpp"
#include "util/clock.hpp"

namespace dlock {

/// fail: a lock can be lost, or two can hold it, or it cannot be used at all.
enum class Severity { ok, note, warn, fail };

struct Finding {
  std::string_view name;  // "redis-eviction": a heading of dlock-doctor(1)
  Severity level = Severity::ok;
  std::string server;              // "redis 10.0.0.7:6379"; "" if it is about none of them
  std::string seen;                // "maxmemory-policy is allkeys-lru"
  std::string why = {};            // why it matters; "" where all is well
  std::string fix = {};            // what to do: a line to paste, or a sentence
  std::optional<Errc> error = {};  // what ended the examination of this server
};
using Findings = std::vector<Finding>;

/// A server that does not answer, or refuses us.
Finding cannot_look(std::string_view name, const std::string& server, const Error& error);

/// "0.31 ms"
std::string in_ms(Clock::duration time);

/// Used by one thread at a time.
class Examination {
 public:
  virtual ~Examination() = default;

  /// Looks at each server that the target names, all of them at the same time, and changes nothing.
  /// A server that does not answer is a finding with an `error`.
  virtual Findings look(Deadline deadline, Cancel cancel) = 0;

  /// Whether locks can be tried without a lasting change of the service, as the creation of tables;
  /// after look().
  virtual bool may_try() const { return true; }

  /// Whether done-marks can be tried so, too.
  virtual bool may_try_marks() const { return true; }

  /// The TTL that the service grants instead of that of the jobs; after look().
  virtual std::optional<Millis> granted_ttl() const { return std::nullopt; }

  /// A line for an administrator that grants all rights that dlock needs; "": see the manual page.
  virtual std::string rights() const { return ""; }

  /// Removes what locks and done-marks of `key` have left behind, and what look() has not found and
  /// was made for them.  For a key that nobody else uses, and that is free; `owners` are the ids of
  /// those who held or wanted it.
  virtual Result<void> remove_traces(std::string_view key, std::span<const std::string> owners,
                                     Deadline deadline) = 0;
};

}  // namespace dlock
