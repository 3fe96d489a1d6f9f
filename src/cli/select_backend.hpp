// Which backend is meant, and where it is.
#pragma once

#include <optional>
#include <span>

#include "core/backend.hpp"
#include "core/config_file.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

struct Selection {
  const BackendEntry* entry = nullptr;
  Target target;
};

/// By its name, its alias or the scheme of its URLs with TLS; null if there is none.
const BackendEntry* find_backend(std::span<const BackendEntry> backends, std::string_view name);

/// Finds the backend that the settings name by name, alias, profile or URL, and adds the config
/// file's settings, the profile's above the others; then sets the log by them.  Refuses what is
/// unknown, not built in, or not a target that the backend can have.  Opens nothing but the
/// password file; from then on this process leaves no core file if there is a secret.
Selection select_backend(Settings& settings, const std::optional<ConfigFile>& config,
                         std::span<const BackendEntry> backends);

/// "file, redis": the names of the backends; only of those that can be opened if `built_in`.
std::string backend_names(std::span<const BackendEntry> backends, bool built_in);

}  // namespace dlock::cli
