#include "backends/redis/server_errors.hpp"

#include <string>

namespace dlock::redis {

Error duplicate_server(const Cluster& cluster, unsigned server, unsigned other) {
  return {Errc::invalid, cluster.address(cluster.ranked(other)).shown + " and " +
                             cluster.address(server).shown + " are the same server: list it once"};
}

Error no_answer(const Cluster& cluster, unsigned server) {
  return {Errc::unreachable, cluster.address(server).shown + ": no answer in time"};
}

Error too_few(unsigned needed, const std::vector<std::optional<Error>>& errors) {
  if (errors.size() == 1 && errors[0]) return *errors[0];
  std::string why;
  std::size_t failed = 0;
  std::size_t denied = 0;
  std::size_t invalid = 0;
  std::size_t conflict = 0;
  std::size_t full = 0;
  for (const auto& error : errors) {
    if (!error) continue;
    ++failed;
    if (error->code == Errc::denied) ++denied;
    if (error->code == Errc::invalid || error->code == Errc::unsupported) ++invalid;
    if (error->code == Errc::conflict) ++conflict;
    if (error->is_full) ++full;
    why += (why.empty() ? ": " : "; ") + error->message;
  }
  const bool will_last = errors.size() - denied - invalid - conflict < needed;
  return {!will_last     ? Errc::unreachable
          : denied > 0   ? Errc::denied
          : conflict > 0 ? Errc::conflict
                         : Errc::invalid,
          std::to_string(errors.size() - failed) + " of " + std::to_string(errors.size()) +
              " servers answered, " + std::to_string(needed) + " are needed" + why,
          errors.size() - failed + full >= needed};
}

}  // namespace dlock::redis
