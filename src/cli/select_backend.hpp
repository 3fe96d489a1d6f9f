// Which backend is meant, where it is, and how to get in.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/backend.hpp"
#include "core/config_file.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

struct Selection {
  const BackendEntry* entry = nullptr;
  Target target;
  bool by_default = false;  // nobody has named it
  std::string profile;      // of the config file, that has named it; or ""
};

/// Finds the backend that the settings name by name, alias, profile or URL, and adds the config
/// file's settings, the profile's above the others; then sets the log by them.  Refuses what is
/// unknown, not built in, or not a target that the backend can have.  Opens nothing but the
/// password file.
Selection select_backend(Settings& settings, const std::optional<ConfigFile>& config,
                         std::span<const BackendEntry> backends);

}  // namespace dlock::cli
