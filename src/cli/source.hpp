// The place of the locks as the user named it: a backend, a profile, a URL or several URLs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"
#include "core/config_file.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

struct Source {
  Setting setting;
  bool shards = false;  // several URLs, of databases that share the keys
  /// The config file that names it; neither if the command line or the environment does.
  enum class File { neither, users, machines };
  File file = File::neither;
  Layer named_by = Layer::machine;  // who names the profile, if it is one
  bool by_default = false;          // nobody has said anything
  std::string profile;              // its name, if it is one
  bool has_servers = false;         // the profile has "servers" of its own
};

/// Adds the settings of the config file, those of the named profile above the others.  The URL or
/// the shards of a profile replace its name.  Refuses a file with an invalid profile.
Source find_source(Settings& settings, const std::optional<ConfigFile>& config,
                   std::span<const BackendEntry> backends);

/// Parses the URLs, with the schemes that entry_of() gives them.  Sets `entry`, which was null, to
/// the backend that all of them mean.  Refuses an unknown backend.
std::vector<Url> take_urls(const Source& source, const Settings& settings,
                           const std::optional<ConfigFile>& config,
                           std::span<const BackendEntry> backends, const BackendEntry*& entry);

/// The backend of a URL's scheme; null if there is none.  An alias in the scheme is replaced by the
/// name. "mysql+x" yields mysql, which then refuses it.
const BackendEntry* entry_of(Url& url, std::span<const BackendEntry> backends);

/// The backend with this name, alias or scheme; null if there is none.
const BackendEntry* find_backend(std::span<const BackendEntry> backends, std::string_view name);

/// The message that no backend is called `word`, with what was probably meant.  Does not show a
/// word that may contain a password.
std::string no_backend(std::string_view word, std::span<const BackendEntry> backends);

/// "file, redis": the names of the backends; with `built_in`, only of those that are built in.
std::string backend_names(std::span<const BackendEntry> backends, bool built_in);

/// Refuses a backend without Traits::remembers. `lacks` names the missing feature: "has no
/// counters".
inline constexpr std::string_view kForgetsJobs = "does not remember which jobs are done";
void refuse_if_forgetful(const BackendEntry& entry, std::string_view lacks,
                         std::span<const BackendEntry> backends);

}  // namespace dlock::cli
