// Where the locks are, as somebody said it: the name of a backend, a profile, a URL or several.
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
  /// Which of two config files says so: neither, if the command line or the environment does.
  enum class File { neither, users, machines };
  File file = File::neither;
  Layer named_by = Layer::machine;  // who names the profile, if it is one
  bool by_default = false;          // nobody has said anything
  std::string profile;              // its name, if it is one
};

/// Adds the config file's settings, those of a profile that is named above the others; its URL or
/// its shards stand for its name then.  Refuses a file with a profile that cannot be.
Source find_source(Settings& settings, const std::optional<ConfigFile>& config,
                   std::span<const BackendEntry> backends);

/// As parsed, with the names that entry_of() gives them; `entry`, which was null, is the backend
/// that all of them mean.  Refuses what is unknown.
std::vector<Url> take_urls(const Source& source, const Settings& settings,
                           const std::optional<ConfigFile>& config,
                           std::span<const BackendEntry> backends, const BackendEntry*& entry);

/// The backend that a URL's scheme means, null if there is none.  An alias in it becomes the name.
/// Of "mysql+x" it is mysql, which then refuses it.
const BackendEntry* entry_of(Url& url, std::span<const BackendEntry> backends);

/// By its name, an alias or a scheme of its URLs; null if there is none.
const BackendEntry* find_backend(std::span<const BackendEntry> backends, std::string_view name);

/// That no backend is called `word`, and what was probably meant: one of them, or of the other
/// `names`.  Does not show a word that may be a URL without its scheme.
std::string no_backend(std::string_view word, std::span<const BackendEntry> backends,
                       std::vector<std::string_view> names = {});

/// "file, redis": the names of the backends; only of those that can be opened if `built_in`.
std::string backend_names(std::span<const BackendEntry> backends, bool built_in);

/// Refuses what only a backend with Traits::remembers can do; `lacks`: "has no counters".
inline constexpr std::string_view kForgetsJobs = "does not remember which jobs are done";
void refuse_if_forgetful(const BackendEntry& entry, std::string_view lacks,
                         std::span<const BackendEntry> backends);

}  // namespace dlock::cli
