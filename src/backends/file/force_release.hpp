// Taking a lock from its holder.
#pragma once

#include <memory>
#include <string_view>

#include "backends/file/lock_dir.hpp"
#include "core/backend.hpp"
#include "util/clock.hpp"

namespace dlock::file {

/// See Backend::force_release().  Waits until the holder has let go; if that takes it longer than
/// until `deadline`, true if it has said that it knows, else Errc::unreachable.
Result<bool> force_release(const std::shared_ptr<const LockDir>& dir, std::string_view key,
                           std::string_view owner_id, const Reason& reason, Deadline deadline);

}  // namespace dlock::file
