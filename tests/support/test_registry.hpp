// The backends of dlock-test: the built-in ones, `memory` and `faulty`.
#pragma once

#include <span>

#include "core/backend.hpp"

namespace dlock::test {

std::span<const BackendEntry> test_backends();

/// The row with this name or alias; null if there is none.
const BackendEntry* find_backend(std::string_view name);

}  // namespace dlock::test
