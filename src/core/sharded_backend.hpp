// Several databases that share the keys between them, seen as one.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace dlock {

/// Opens what `target` names: the service itself, or, where it has shards, a Backend that opens
/// each of them when it is first needed.  For acquire(), inspect() and force_release() that is the
/// shard of the key alone, so what becomes of the others does not matter; for list() it is all of
/// them, one after the other.  take_numbers() and lease_window() are refused.  `entry` must outlive
/// the backend.
Result<std::unique_ptr<Backend>> open_backend(const BackendEntry& entry, const Target& target,
                                              Deadline deadline, Cancel cancel);

}  // namespace dlock
