#include "backends/redis/server_reports.hpp"

#include <algorithm>

#include "backends/redis/quorum.hpp"
#include "backends/redis/record.hpp"
#include "backends/redis/server_errors.hpp"

namespace dlock::redis {

bool ServerReports::is_majority(std::size_t servers) const {
  return servers >= quorum(cluster_.size());
}

void ServerReports::begin_round(unsigned round) {
  if (round <= round_) return;
  round_ = round;
  for (OfOne& its : of_each_) {
    its.holder.clear();
    its.has_another_list = false;
  }
}

void ServerReports::answered(unsigned server, const std::string& holder,
                             const std::string& record) {
  const auto found = parse_record(record);
  const bool is_another = found && !found->servers.empty() && found->servers != cluster_.list();
  of_each_[server] = {.is_there = true, .holder = holder, .has_another_list = is_another};
}

bool ServerReports::is_one_missing() const {
  return std::ranges::count(of_each_, false, &OfOne::is_there) > 0;
}

bool ServerReports::has_quorum() const {
  const auto answered =
      std::ranges::count_if(of_each_, [](const OfOne& its) { return its.is_there && !its.error; });
  return is_majority(static_cast<std::size_t>(answered));
}

std::optional<Error> ServerReports::too_few(bool is_over) const {
  std::vector<std::optional<Error>> errors;
  std::size_t failed = 0;
  for (const unsigned server : cluster_.all()) {
    errors.push_back(of_each_[server].error);
    if (is_over && !of_each_[server].is_there) errors.back() = no_answer(cluster_, server);
    if (errors.back()) ++failed;
  }
  if (is_majority(cluster_.size() - failed)) return std::nullopt;
  return redis::too_few(quorum(cluster_.size()), errors);
}

std::optional<unsigned> ServerReports::majority_holder() const {
  for (const unsigned server : cluster_.all()) {
    const OfOne& its = of_each_[server];
    if (its.holder.empty()) continue;
    const auto same = std::ranges::count(of_each_, its.holder, &OfOne::holder);
    if (!is_majority(cluster_.size() - static_cast<std::size_t>(same))) return server;
  }
  return std::nullopt;
}

std::optional<unsigned> ServerReports::with_another_list() const {
  const auto found = std::ranges::find(of_each_, true, &OfOne::has_another_list);
  if (found == of_each_.end()) return std::nullopt;
  return static_cast<unsigned>(found - of_each_.begin());
}

}  // namespace dlock::redis
