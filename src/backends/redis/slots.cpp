#include "backends/redis/slots.hpp"

#include <algorithm>

namespace dlock::redis {

unsigned lowest_free_number(unsigned slots, unsigned needed,
                            const std::vector<std::optional<std::string>>& taken) {
  for (unsigned number = 1; number <= slots; ++number) {
    const auto free = std::ranges::count_if(taken, [&](const auto& there) {
      return there && (number > there->size() || (*there)[number - 1] != '1');
    });
    if (static_cast<unsigned>(free) >= needed) return number;
  }
  return 0;
}

}  // namespace dlock::redis
