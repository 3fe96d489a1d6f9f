// The backends that this dlock knows.
#pragma once

#include <span>

#include "core/backend.hpp"

namespace dlock {

/// In the order in which they are shown; the first is the default.  Rows without `open` were left
/// out of this build.
std::span<const BackendEntry> builtin_backends();

}  // namespace dlock
