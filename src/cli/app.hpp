// The command line: from argv to an exit status.
#pragma once

#include <span>

#include "core/backend.hpp"

namespace dlock::cli {

/// Runs dlock with these backends, the first of which is the default.
int run_main(int argc, char** argv, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
