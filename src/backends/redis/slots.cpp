#include "backends/redis/slots.hpp"

#include <algorithm>

namespace dlock::redis {

unsigned choose_slot(unsigned slots, unsigned needed,
                     const std::vector<std::optional<NumbersThere>>& servers) {
  const auto can_be = [&](unsigned number) {
    const auto free = std::count_if(servers.begin(), servers.end(), [&](const auto& there) {
      return there && (number > there->taken.size() || there->taken[number - 1] != '1');
    });
    return static_cast<unsigned>(free) >= needed;
  };
  for (const auto& there : servers) {
    if (there && there->given > 0 && there->given <= slots && can_be(there->given)) {
      return there->given;
    }
  }
  for (unsigned number = 1; number <= slots; ++number) {
    if (can_be(number)) return number;
  }
  return 0;
}

}  // namespace dlock::redis
