// The config file: JSON, read into a flat list of keys with their line numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace dlock {

/// The JSON types of a value.  A duration is a string ("90s") or a number of seconds.  A count is a
/// number or a boolean.  A list is a string or an array of strings.
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

/// One config file, or two that were combined.
struct ConfigFile {
  std::vector<ConfigProfile> profiles;  // in the order of the file, as are the entries
  std::vector<ConfigEntry> entries;
  bool holds_password = false;  // in any of the entries
  std::string out_of_reach;     // a file that would have been read before this one: find_config()

  const ConfigProfile* find_profile(std::string_view name) const;
  /// Null if `key` does not stand in `profile`.
  const ConfigEntry* find(std::string_view profile, std::string_view key) const;
  /// Adds the entries of another file, behind those of this one.  A profile that both files have is
  /// that of this file as a whole.
  void add(ConfigFile other);
};

/// The type of a key at the top level or in a profile.  For an unknown key, an error whose message
/// follows the words "unknown key".
using KeyKind = Result<ValueKind> (*)(std::string_view key, bool in_profile);

/// Parses `text`, the content of `path`.  Errc::invalid names `path:line` and the fault, and never
/// shows a value, because it may contain a password.  Hides the memory of this process if it finds
/// a password.
Result<ConfigFile> parse_config(std::string_view text, const std::string& path, KeyKind kind_of);

/// Reads the file if it can be trusted (see read_trusted()).  A file with a password in a URL must
/// be private.  None if the file does not exist; Errc::denied if it cannot be read or trusted;
/// Errc::invalid if its content is wrong.
Result<std::optional<ConfigFile>> read_config(const std::string& path, KeyKind kind_of);

}  // namespace dlock
