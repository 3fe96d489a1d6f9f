// A lock service with TTLs that needs no server: its state is one JSON file.
#pragma once

#include "core/backend.hpp"

namespace dlock::test {

/// `memory:///path/of/state` is shared by all processes, `memory://` by the clients of this one.
BackendEntry memory_entry();

}  // namespace dlock::test
