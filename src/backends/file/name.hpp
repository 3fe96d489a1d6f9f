// The names of the files of a key.
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

/// The key that has this name; none if no key has it, as for our auxiliary files and the files of
/// other programs.
std::optional<std::string> key_of(std::span<const std::string> folders, std::string_view leaf);

/// True for a folder with the rest of long names.
bool is_folder_name(std::string_view name);

// The auxiliary files beside a lock file.  No encoded key has a `~` in it.
std::string slot_name(std::string_view leaf, unsigned number);  // from 1
std::string gate_name(std::string_view leaf);
std::string registrations_name(std::string_view leaf);

/// The name of the lock file that has this folder of registrations; none if it is not the name of
/// one.
std::optional<std::string_view> leaf_of_registrations(std::string_view name);

}  // namespace dlock::file
