// Combines the settings of command line, environment and config files.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parse.hpp"
#include "core/config_file.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

/// The settings of the command line and the environment.  An empty variable counts as unset.
Settings given_settings(const Invocation& invocation);

/// The config file of the machine.
inline constexpr std::string_view kMachinesConfig = "/etc/dlock/config.json";

/// The paths of the config files if none is named: that of the user ("" without HOME), and that of
/// the machine.
std::array<std::string, 2> config_paths();

/// The entry as a setting, in the layer of its place in the file or files.
Setting setting_of(const ConfigEntry& entry);

/// Reads the file that --config or DLOCK_CONFIG names, otherwise the user's file and that of the
/// machine, combined.  None if there is no file, or if --config is empty.  Fails for a file that is
/// invalid, unreadable, or named and missing.  If one of the two usual files is in a directory that
/// may not be searched, it is skipped, and the result notes its path.
Result<std::optional<ConfigFile>> find_config(const Settings& settings);

/// As find_config(), but refuses an error.  Removes the entries that are options of other commands
/// only.
std::optional<ConfigFile> load_config(const Settings& settings, const Command& command);

/// These settings; with --all, once for each profile of the config, which they then name.
std::vector<Settings> each_backend(const Invocation& invocation, const Settings& settings);

/// Adds the entries of `profile`; of the top level if `profile` is empty.
void add_config(Settings& settings, const ConfigFile& config, std::string_view profile);

/// Sets how much the log prints, and in which form.
void set_log_from(const Settings& settings);

}  // namespace dlock::cli
