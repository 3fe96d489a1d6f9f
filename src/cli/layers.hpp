// Brings together what flags, environment and config file say.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "cli/parse.hpp"
#include "core/config_file.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

/// The flags and, for each flag that the command takes, its variable.  An empty variable counts as
/// unset.
Settings given_settings(const Invocation& invocation);

/// The config file of the machine, beside those of its users.
inline constexpr std::string_view kMachinesConfig = "/etc/dlock/config.json";

/// Where config files are, if none is named: the user's, "" without HOME, and that of the machine.
std::array<std::string, 2> config_paths();

/// As a setting of the layer that its place in the file, or files, gives it.
Setting setting_of(const ConfigEntry& entry);

/// The file that --config or DLOCK_CONFIG names, else the user's and that of the machine, put
/// together; none if there is none, or --config is empty.  An error for one that is bad, cannot be
/// read, or is named and missing.  One of the usual two in a directory that may not be searched is
/// passed over and noted; if it was the only one, the result is empty but for that.
Result<std::optional<ConfigFile>> find_config(const Settings& settings);

/// find_config(), and refuses what it does not like.  Without the entries that are flags of other
/// commands only.
std::optional<ConfigFile> load_config(const Settings& settings, const Command& command);

/// Adds what stands in `profile`, or at the top level if that is empty.
void add_config(Settings& settings, const ConfigFile& config, std::string_view profile);

/// Tells the log how much to say, and in which form.
void set_log_from(const Settings& settings);

}  // namespace dlock::cli
