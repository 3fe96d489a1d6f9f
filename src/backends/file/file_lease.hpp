// A lock that is held: one flocked file, or two.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/file/lock_file.hpp"
#include "backends/file/watch.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// What an acquire has got together.
struct Held {
  Place place;
  std::string key;
  std::string owner_id;
  std::optional<std::uint64_t> fence;
  bool recorded = false;         // false: the lock file was foreign, and nothing of ours is in it
  LockFile main;                 // exclusive: LOCK_EX; else LOCK_SH
  std::optional<LockFile> seat;  // shared and slots: LOCK_EX
  Watch watch;                   // of the wait, cleared; to be used again
};

/// Errc::unreachable where no descriptor is left for the witness.
Result<std::unique_ptr<Lease>> make_lease(Held held);

}  // namespace dlock::file
