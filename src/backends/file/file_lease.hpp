// A lock that is held.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/file/lock_file.hpp"
#include "backends/file/registration.hpp"
#include "backends/file/watch.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// The parts of a grant.
struct Held {
  std::shared_ptr<const Place> place;
  std::string key;
  Owner owner;
  Claim claim;
  std::optional<std::uint64_t> fence;
  std::optional<unsigned> slot;
  std::vector<LockFile> locks;  // in the order in which they were taken
  std::unique_ptr<Registration> registration;
  Watch watch;  // of the wait, cleared; it can be used again
};

std::unique_ptr<Lease> make_lease(Held held);

}  // namespace dlock::file
