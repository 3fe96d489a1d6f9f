// The checks of a backend's examination, as rows of a table.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/examination.hpp"

namespace dlock {

/// What a check has seen.
struct Seen {
  std::string text;
  Severity level = Severity::ok;
  std::string fix = {};  // instead of that of the row, if that does not fit
};

/// A row of a backend's table of checks.  `Facts` is what is known of one server.
template <class Facts>
struct Check {
  std::string_view name;
  /// None: it cannot be told, or does not matter here.
  std::optional<Seen> (*look)(const Facts& facts);
  std::string_view why = {};  // this and `fix`: of a level that is not ok
  std::string_view fix = {};  // a "{}" stands for what Facts::client() says: "redis-cli -p 6380"
};

/// `fix` with `client` in place of each "{}".
std::string with_client(std::string_view fix, const std::string& client);

/// What a server says of itself: values by their names.
class Told {
 public:
  void add(const std::string& name, std::string value) { values_[name] = std::move(value); }
  /// Of lines such as "Mode: leader" and "maxClientCnxns=60": one of the `separators` ends the
  /// name.
  void add_lines(std::string_view text, std::string_view separators);

  /// The beginning of the value; "" if there is none.
  std::string operator()(const std::string& name) const;
  bool empty() const { return values_.empty(); }
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

/// How long a server took to answer, several times.
struct RoundTrips {
  /// Calls ask() ten times; fewer if that takes half of the time that is left.
  template <class Ask>
  Result<void> measure(Deadline deadline, Ask ask) {
    const Deadline start = Clock::now();
    while (count < 10 && (count == 0 || Clock::now() - start < (deadline - start) / 2)) {
      const Deadline before = Clock::now();
      if (Result<void> ok = ask(); !ok) return ok;
      add(Clock::now() - before);
    }
    return {};
  }
  void add(Clock::duration time);
  /// What an answer says of the server's clock is the more exact the faster it came.
  bool is_fastest(Clock::duration time) const { return count == 0 || time < best; }
  Seen seen(Millis ttl) const;

  Clock::duration best{}, worst{};
  unsigned count = 0;
};

/// A clock that is so far ahead of ours.  kWhyClock and the like are for the rows of the checks.
Seen clock_seen(Millis ahead);
inline constexpr std::string_view kWhyClock =
    "Near the end of a period, dlock once takes the wrong one; list and show print wrong times.";
inline constexpr std::string_view kFixClock =
    "timedatectl set-ntp true    # on the machine whose `date` is wrong";
inline constexpr std::string_view kWhySlow =
    "A renewal that takes so long can come too late, and the job is ended.";

/// A certificate that ends in so many days.
Seen certificate_seen(int days_left);

/// Adds what the checks have seen on one server, in the order of the table.
template <class Facts>
void check_all(std::span<const Check<Facts>> checks, const Facts& facts, Findings& out) {
  for (const Check<Facts>& check : checks) {
    const std::optional<Seen> seen = check.look(facts);
    if (!seen) continue;
    Finding finding{check.name, seen->level, facts.server, seen->text};
    if (seen->level != Severity::ok) {
      finding.why = check.why;
      finding.fix = with_client(seen->fix.empty() ? check.fix : seen->fix, facts.client());
    }
    out.push_back(std::move(finding));
  }
}

/// What `look` finds out about each of `servers`, all of which it looks at at the same time.
template <class Servers, class Look>
auto look_at_each(const Servers& servers, Look look) {
  using Facts = std::invoke_result_t<Look, decltype(*servers.begin())>;
  std::vector<std::future<Facts>> pending;
  for (const auto& server : servers) {
    pending.push_back(std::async(look, std::cref(server)));
  }
  std::vector<Facts> out;
  for (auto& one : pending) out.push_back(one.get());
  return out;
}

/// check_all() for each server; of one with an error, only that, as the finding `name`.  It is not
/// a failure where the others are enough for locks.
template <class Facts>
void check_each(std::span<const Check<Facts>> checks, const std::vector<Facts>& servers,
                std::string_view name, std::string_view fix, bool others_are_enough,
                Findings& out) {
  for (const Facts& facts : servers) {
    if (!facts.error) check_all(checks, facts, out);
    if (!facts.error || facts.error->code == Errc::cancelled) continue;
    Finding& finding = out.emplace_back(cannot_look(name, facts.server, *facts.error));
    finding.fix = fix;
    if (!others_are_enough) continue;
    finding.level = Severity::warn;
    finding.why = "Jobs run without it, until one more fails.";
  }
}

}  // namespace dlock
