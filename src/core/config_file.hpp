// The config file: JSON, read into a flat list that knows on which line each key stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace dlock {

/// What a value may be written as.  A duration may be a string ("90s") or a number of seconds, a
/// count a number or true and false, a list one string or an array of them.
enum class ValueKind { text, number, duration, boolean, count, list };

struct ConfigEntry {
  std::string profile;  // empty: at the top level
  std::string key;
  std::vector<std::string> values;  // as a flag would have them; more than one only in a list
  std::string where;                // `/etc/dlock/config.json:7`
  bool is_added = false;            // from a file that counts less: add()
};

struct ConfigProfile {
  std::string name;
  std::string where;
};

/// One file, or several that were put together.
struct ConfigFile {
  std::vector<ConfigProfile> profiles;  // in the order of the file, as are the entries
  std::vector<ConfigEntry> entries;
  bool holds_password = false;  // in any of the entries
  std::string out_of_reach;     // a file that would have been read before this one: find_config()

  const ConfigProfile* find_profile(std::string_view name) const;
  /// Null if `key` does not stand in `profile`.
  const ConfigEntry* find(std::string_view profile, std::string_view key) const;
  /// Adds what another file says, behind what this one does; but no profile that this one has, for
  /// a profile counts as a whole.
  void add(ConfigFile other);
};

/// Tells which keys may stand at the top level and in a profile; for those that may not an error
/// that goes behind the words "unknown key".
using KeyKind = Result<ValueKind> (*)(std::string_view key, bool in_profile);

/// Reads `text`, which came from `path`.  Errc::invalid with `path:line: ` and what is wrong there;
/// never shows a value, for it may hold a password.  The first password hides this process's
/// memory.
Result<ConfigFile> parse_config(std::string_view text, const std::string& path, KeyKind kind_of);

/// Reads the file, if it can be trusted (see read_trusted(); one with a password in a URL must be
/// private).  None if it does not exist; Errc::denied if it cannot be read or trusted,
/// Errc::invalid for what stands in it.
Result<std::optional<ConfigFile>> read_config(const std::string& path, KeyKind kind_of);

}  // namespace dlock
