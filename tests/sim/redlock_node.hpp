// One simulated server of a lock: the shipped scripts, as src/backends/redis/node.cpp calls them,
// without the queue.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/names.hpp"
#include "core/backend.hpp"
#include "local_clock.hpp"
#include "script_server.hpp"

namespace dlock::sim {

/// Names one acquisition.
using Id = std::uint64_t;

class Node {
 public:
  /// The time of its clock when that of the simulation is 0.
  static constexpr std::chrono::microseconds kBeginning{1'700'000'000'000'000};

  struct Options {
    Millis ttl;
    unsigned slots = 1;              // of every lock in slots mode
    std::optional<unsigned> number;  // in the client's list; none: it counts its grants by itself
    std::vector<ScriptBug> bugs = {};
  };
  explicit Node(const Options& options);

  struct Granted {
    bool yes = false;  // else somebody else holds it
    std::uint64_t counter = 0;
    unsigned given = 0;
    std::string taken;
  };
  Granted grant(Id id, Mode mode, bool wants_number, Deadline now);
  struct Written {
    bool yes = false;
    bool overtaken = false;
    bool taken = false;  // the number, by another holder
    std::uint64_t counter = 0;
  };
  Written write(Id id, Mode mode, std::uint64_t token, unsigned slot, Deadline now);
  struct Renewed {
    bool yes = false;
    bool taken = false;
  };
  Renewed renew(Id id, Mode mode, std::uint64_t token, unsigned slot, Deadline now);
  bool remove(Id id, Mode mode, Deadline now);
  /// A server that has lost its data is given the rest of a lease.
  bool give_again(Id id, Mode mode, std::uint64_t token, unsigned slot, Millis rest, Deadline now);

  /// A restart without its data.
  void forget() { server_.data().forget(); }

  /// The number that this slots holder has here; 0: none.
  unsigned number_of(Id id);
  /// No slots holder has more than one number here.
  bool has_no_two_numbers();

  // What no server knows: whether an operation has changed another's grant, and whether a grant has
  // outlived the last request of its holder by more than the ttl.
  bool changed_foreign() const { return changed_foreign_; }
  bool kept_too_long() const { return kept_too_long_; }

 private:
  using Words = std::vector<std::string>;

  redis::Reply run(const redis::Script& script, Id id, Mode mode, const Words& more_keys,
                   const Words& arguments);
  redis::Reply ask(const Words& command) { return server_.data().call(command).reply; }
  void set_clock(Deadline now);
  Words numbers();
  std::string record(Id id, std::uint64_t token, unsigned slot) const;
  std::string mode_text(Mode mode) const;

  const Options options_;
  const redis::Names names_ = redis::names_of("", "job");
  ScriptServer server_;
  std::map<const redis::Script*, std::string_view> texts_;  // of the scripts that have a bug
  std::int64_t now_ms_ = 0;
  std::map<std::string, std::int64_t> asked_;  // when the last request of each came
  bool changed_foreign_ = false;
  bool kept_too_long_ = false;
};

}  // namespace dlock::sim
