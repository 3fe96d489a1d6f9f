// One Redis server: knows the scripts and the wire, knows nothing of quorums.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/connection.hpp"
#include "backends/redis/names.hpp"
#include "backends/redis/scripts.hpp"
#include "backends/redis/slots.hpp"
#include "core/backend.hpp"

namespace dlock::redis {

/// Whether an attempt may take a lock that is free while others wait for it.
enum class Turn {
  once,    // it will not be asked again: yes
  wait,    // not before those that came earlier
  called,  // it was called: yes
  late,    // the first in the queue was called and did not come: yes
};

/// What one server answered to an attempt.
struct Vote {
  enum class Kind {
    granted,
    held,        // look again in `look_in`, unless called before
    other_turn,  // free, but another waiter was called, which has until `look_in`
    other_mode,  // held in `held_mode`, which cannot be mixed with what was asked for
    twin,        // granted already under another number of the list, `twin`
  };
  Kind kind = Kind::held;
  std::uint64_t fence = 0;  // granted: this server's counter, which has counted this grant if there
                            // is no other server; 0 if it is no number
  std::uint64_t clock_ms = 0;     // granted by one of several servers: its time since 1970
  NumbersThere numbers;           // granted, of slots
  std::optional<Millis> look_in;  // none: what holds it never expires
  std::string came;               // since when we wait, by the server's clock; for the next attempt
  int place = 0;                  // in the queue
  std::string held_mode;
  std::string holder;  // held: who has all of it, in so many bytes; "": unknown
  std::string list;    // held: as Seat::list
  unsigned twin = 0;
};

/// Where a server stands among several.
struct Seat {
  unsigned number = 0;  // Cluster::ranks()
  std::string list;     // as the number, the same for all clients with the same servers
};

/// How to ask for the lock.
struct Try {
  Turn turn = Turn::wait;
  bool join = false;          // the queue, if it is not granted
  std::string came;           // of the vote before, or ""
  bool wants_number = false;  // of slots: the lowest that is free on this server
};

/// What several servers have agreed on for a grant.
struct Agreed {
  std::uint64_t token = 0;
  unsigned slot = 0;  // the number of a slots holder; 0: none
};

/// What one server answered to a fencing token, and the number of a slots holder.
struct Written {
  enum class Kind {
    written,
    gone,       // the lock is not ours any more
    overtaken,  // `counter` stands there, of somebody else
    taken,      // another holder has the number there
  };
  Kind kind = Kind::written;
  std::uint64_t counter = 0;
};

/// What one server answered to a renewal.
struct Extension {
  bool ours = false;
  bool was_endless = false;      // somebody had taken the expiry from it
  std::optional<unsigned> twin;  // ours under another number of the list, which counts there
  std::string why;               // not ours: what a force-release said
  std::string found;             // not ours: the type of what is there; "none"
};

/// What one server answered to a release.
struct Removal {
  bool ours = false;
  std::string why;  // not ours: what a force-release said
};

/// What a removal is to do besides.
struct Removing {
  bool was_waiting = false;  // leave the queue, and pass a call on
  bool in_doubt = false;  // an attempt may still be under way: it shall get nothing when it comes
  bool unheard = false;   // nobody may be there to send it again if the script is not known
};

/// For a waiter that would share the lock, or take one of its slots.
struct Room {
  bool is_there = false;          // it can have it now, as far as this server can tell
  std::optional<Millis> look_in;  // else; nothing: it never ends
};

/// What one server answered to a holder that wants its job to be remembered.
struct Completed {
  bool done = false;
  std::string why;    // not done, since not ours: what a force-release said
  std::string found;  // the same: the type of what is there; "none"
};

class Node {
 public:
  Node(Address address, std::string prefix, std::optional<Seat> seat = {});

  const Address& address() const { return connection_.address(); }
  const std::string& prefix() const { return prefix_; }
  Names names(std::string_view key) const { return names_of(prefix_, key); }

  // In all that follows: Errc::unreachable (it may have been done all the same), denied, cancelled.
  // What one of several servers is asked it may take until `deadline` to answer, and so much longer
  // as it takes to connect, or to send a script that it has forgotten: these are no sign that it is
  // slow.

  /// Nothing to do if it is connected.
  Result<void> connect(Deadline deadline, Cancel cancel) {
    return connection_.connect(deadline, cancel);
  }
  /// `record` without a fence.
  Result<Vote> try_acquire(const Request& request, const std::string& record, const Try& how,
                           Deadline deadline, Cancel cancel);
  /// For one of several servers; `record` without a fence and a slot.  A number that this server
  /// has given us goes back if it is another.
  Result<Written> write_agreed(const Request& request, const std::string& record,
                               const Agreed& agreed, Deadline deadline, Cancel cancel);
  /// `agreed.token`: to be added to the record of one of several servers.
  Result<Extension> extend(const Request& request, const std::string& record, const Agreed& agreed,
                           Deadline deadline, Cancel cancel);
  /// Gives one of several servers that has lost its data what is left of the lease; false: it has
  /// not lost them, or the lock is taken there.
  Result<bool> give_again(const Request& request, const std::string& record, const Agreed& agreed,
                          Deadline valid_until, Deadline deadline, Cancel cancel);
  Result<Removal> remove(const Request& request, Removing how, Deadline deadline, Cancel cancel);

  Result<Room> room(const Request& request, Deadline deadline, Cancel cancel);

  Result<LockInfo> look(std::string_view key, Deadline deadline, Cancel cancel);
  /// The same, but one holder, and the numbers of holders and waiters: it costs the same however
  /// many they are.  `seen`: the holder that is wanted, if it is one still.
  Result<LockInfo> glance(std::string_view key, const std::string& seen, Deadline deadline,
                          Cancel cancel);
  Result<std::vector<LockInfo>> list(std::string_view key_prefix, Deadline deadline, Cancel cancel);
  Result<bool> break_lock(std::string_view key, std::string_view owner_id, std::string_view why,
                          Deadline deadline, Cancel cancel);

  /// If the lock is ours, writes the record of `mark` for as long as `remember`, and releases the
  /// lock in the same step.  Done also if an earlier call has done it.
  Result<Completed> complete(const Request& request, const RecordName& mark,
                             const std::string& text, Millis remember, Deadline deadline,
                             Cancel cancel);

  /// The names there that fit each of the patterns, each once.
  Result<std::vector<std::vector<std::string>>> scan(const std::vector<std::string>& patterns,
                                                     Deadline deadline, Cancel cancel);
  /// Readable when the connection has ended; -1 while there is none.
  int fd() const { return connection_.fd(); }
  /// Tells one connection from the next; 0 while there is none.
  unsigned connection() const { return connection_.number(); }

  /// Plain commands, all at once.
  Result<std::vector<Reply>> ask(const std::vector<Command>& commands, Deadline deadline,
                                 Cancel cancel) {
    return connection_.ask(commands, deadline, cancel);
  }
  Error unexpected_reply() { return connection_.unexpected_reply(); }
  /// Until when one answer is waited for, at most until `deadline`.
  Deadline patience(Deadline deadline) const;

 private:
  Result<Reply> run(const Script& script, std::string_view shape, const Names& names,
                    const std::vector<std::string>& more_keys,
                    const std::vector<std::string>& arguments, Deadline deadline, Cancel cancel,
                    bool by_text = false);
  bool needs_text(const Reply& reply);
  std::string seated(std::string record, std::uint64_t token = 0) const;
  Result<std::vector<std::string>> locks(std::string_view key_prefix, Deadline deadline,
                                         Cancel cancel);

  Connection connection_;
  bool lacks_evalsha_ = false;
  const std::string prefix_;
  const std::optional<Seat> seat_;  // none if it is the only one
  const std::string number_;        // ""
};

}  // namespace dlock::redis
