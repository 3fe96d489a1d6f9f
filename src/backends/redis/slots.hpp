// Which number a waiter asks for that wants one of several slots: pure reasoning.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dlock::redis {

/// The lowest number of 1..slots that at least `needed` of the servers have free; 0: none is free
/// on so many.
///
/// `taken`: of each server the numbers that others have there, "101" are 1 and 3; none of a server
/// that does not count.
unsigned lowest_free_number(unsigned slots, unsigned needed,
                            const std::vector<std::optional<std::string>>& taken);

}  // namespace dlock::redis
