// Who holds a key and who waits for it, as its rows tell; and what that means for one who wants it.
// No network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/mysql/answer.hpp"
#include "backends/mysql/schema.hpp"
#include "core/backend.hpp"

namespace dlock::mysql {

/// One row of the table of locks.
struct Party {
  std::uint64_t id = 0;  // grows: the order of the queue
  Kind kind = Kind::holder;
  std::string name;  // the key
  std::string owner;
  Mode mode = Mode::exclusive;
  unsigned slots = 1;
  std::uint64_t fence = 0;
  Millis age{0};
  std::optional<Millis> left;  // until it expires; none: it has no end
  bool present = false;        // its connection is there
  unsigned slot = 0;           // of a holder in mode slots; 0: an earlier dlock gave it none
  std::string record;          // empty if it was not asked for
  std::string expires_at;      // by the server; changes with each renewal
};

/// The row as Statements::look() asks for it; none if it makes no sense.
std::optional<Party> parse_party(const Row& row);
/// Those of the rows that make sense.
std::vector<Party> parties_of(const Answer& rows);

class State {
 public:
  /// Of the rows of one key, in the order of their ids.
  explicit State(std::vector<Party> parties);

  const std::vector<Party>& holders() const { return holders_; }
  const std::vector<Party>& waiters() const { return waiters_; }
  /// Waiters whose connection has gone.
  const std::vector<Party>& departed() const { return departed_; }

  LockInfo info(const std::string& key) const;

  struct Decision {
    enum class Kind {
      take,      // nobody is in the way
      conflict,  // the holders' mode cannot be mixed with ours
      behind,    // the waiter `party` is one of those that must acquire the lock first
      held,      // the holder `party` must go, which its mark tells
      room,      // any of the holders may make room, as `party`; or it must go, and has no mark
    };
    Kind kind = Kind::take;
    const Party* party = nullptr;  // of this State; none for take
    std::size_t ahead = 0;         // how many wait before us
  };
  /// For who has waited with the row `own`; 0: has not begun to.
  Decision decide(const Request& request, std::uint64_t own) const;

 private:
  std::vector<Party> holders_;
  std::vector<Party> waiters_;
  std::vector<Party> departed_;
};

}  // namespace dlock::mysql
