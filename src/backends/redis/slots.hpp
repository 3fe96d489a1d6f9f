// Which number an attempt asks for that wants one of several slots: pure reasoning.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dlock::redis {

/// What one of several servers said of the numbers when it granted the lock.
struct NumbersThere {
  unsigned given = 0;  // the number that it has given us already; 0: none
  std::string taken;   // the numbers that others have there: "101" are 1 and 3
};

/// The number of 1..slots to take on all servers that have granted the lock.  At least `needed` of
/// them must have it free.  This is the given number, if it can be, or else the lowest.  0: no
/// number is free on so many.
///
/// `servers`: nothing for those that have not granted the lock.
unsigned choose_slot(unsigned slots, unsigned needed,
                     const std::vector<std::optional<NumbersThere>>& servers);

}  // namespace dlock::redis
