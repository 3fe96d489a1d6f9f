#include "backends/redis/redis_backend.hpp"

#include "backends/redis/acquire.hpp"
#include "backends/redis/node.hpp"

namespace dlock::redis {
namespace {

class RedisBackend final : public Backend {
 public:
  explicit RedisBackend(Place place)
      : location_(std::move(place.location)),
        node_(std::make_shared<Node>(std::move(place.address), std::move(place.prefix))) {}

  std::string location() const override { return location_; }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    return redis::acquire(node_, request, wait);
  }
  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline deadline) override {
    return node_->list(prefix, deadline);
  }
  Result<LockInfo> inspect(std::string_view key, Deadline deadline) override {
    return node_->look(key, deadline);
  }
  Result<bool> force_release(std::string_view key, std::string_view owner_id, std::string_view why,
                             Deadline deadline) override {
    if (owner_id.empty()) return false;
    return node_->break_lock(key, owner_id, why, deadline);
  }

 private:
  const std::string location_;
  const std::shared_ptr<Node> node_;  // the leases have it too: one connection for all
};

}  // namespace

Result<void> check(const Target& target) {
  const auto place = place_of(target);
  if (!place) return place.error();
  return {};
}

Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  auto place = place_of(target);
  if (!place) return place.error();
  return std::make_unique<RedisBackend>(std::move(*place));
}

}  // namespace dlock::redis
