// Which files stand for a key.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::file {

/// The path of a key's lock file below the lock directory, in parts.
struct Name {
  std::vector<std::string> folders;  // empty unless the encoded key is too long for one file name
  std::string leaf;
};

Name name_of(std::string_view key);

/// The key that has this name; none for what is not the name of any key: our auxiliary files and
/// whatever strangers put into the directory.
std::optional<std::string> key_of(std::span<const std::string> folders, std::string_view leaf);

/// True for a folder that holds the rest of long names.
bool is_folder_name(std::string_view name);

// The auxiliary files beside a lock file.  No encoded key has a `~` in it.
std::string slot_name(std::string_view leaf, unsigned number);  // from 1
std::string gate_name(std::string_view leaf);
std::string roster_name(std::string_view leaf);

/// The name of the lock file beside which this is a roster; none if it is no roster's name.
std::optional<std::string_view> leaf_of_roster(std::string_view name);

}  // namespace dlock::file
