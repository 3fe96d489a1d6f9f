// dlock backends: what is built in and what each can do.
#pragma once

#include <span>

#include "cli/columns.hpp"
#include "cli/parse.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// The features of each backend.  With `with_build`, also which backends are missing in this build,
/// if any is.
Table backend_table(std::span<const BackendEntry> backends, bool with_build);

int cmd_backends(const Invocation& invocation, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
