// Selects the backend, its servers and its credentials.
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

/// The options that a pasted command needs to find the same locks, " -b prod": those of the command
/// line, and for a message that may be read elsewhere, with `least` environment, those of the
/// variables.  A password is never in them.  A server whose URL has one is not left out: that would
/// name other servers.
std::string options_of(const Settings& settings, const Target& target, Layer least);

/// Finds the backend that the settings name by name, alias, profile or URL. Adds the settings of
/// the config file, those of the profile above the others, and sets the log.  Refuses a backend
/// that is unknown or not built in, and an invalid target.  Opens no file but the password file.
Selection select_backend(Settings& settings, const std::optional<ConfigFile>& config,
                         std::span<const BackendEntry> backends);

}  // namespace dlock::cli
