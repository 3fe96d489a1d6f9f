// A key is percent-encoded.  255 bytes become up to 765, more than a file name may have.  So a long
// name is cut into folders of exactly kChunk bytes, marked by a `%` at their end, where no encoded
// name can have one.  Nothing is hashed: each key has one path, and each path one key.
//
// The rest of a long name may begin with a dot that was in the middle of the key.  The dot is
// encoded, too, since the rest `..` would be the parent directory.
#include "backends/file/name.hpp"

#include "util/text.hpp"

namespace dlock::file {
namespace {

// Leaves room for `%2E` and for the longest suffix, `~slot4294967295`, below NAME_MAX (255).
constexpr std::size_t kChunk = 200;
constexpr std::string_view kRegistrations = "~w";

}  // namespace

Name name_of(std::string_view key) {
  const std::string encoded = util::percent_encode(key);
  Name name;
  std::string_view rest = encoded;
  while (rest.size() > kChunk) {
    name.folders.push_back(std::string(rest.substr(0, kChunk)) + '%');
    rest.remove_prefix(kChunk);
  }
  if (rest.starts_with('.')) {
    name.leaf = "%2E";
    rest.remove_prefix(1);
  }
  name.leaf += rest;
  return name;
}

std::optional<std::string> key_of(std::span<const std::string> folders, std::string_view leaf) {
  std::string encoded;
  for (const std::string& folder : folders) encoded += folder.substr(0, folder.size() - 1);
  encoded += leaf;
  auto key = util::percent_decode(encoded);
  if (!key) return std::nullopt;
  // Only the name that name_of() returns: `%6a` and `j` must not be listed as one key.
  const Name canonical = name_of(*key);
  if (canonical.leaf != leaf || canonical.folders.size() != folders.size()) return std::nullopt;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (canonical.folders[i] != folders[i]) return std::nullopt;
  }
  return key;
}

bool is_folder_name(std::string_view name) {
  return name.size() == kChunk + 1 && name.ends_with('%') &&
         name.find('~') == std::string_view::npos;
}

std::string slot_name(std::string_view leaf, unsigned number) {
  return std::string(leaf) + "~slot" + std::to_string(number);
}
std::string gate_name(std::string_view leaf) { return std::string(leaf) + "~gate"; }
std::string registrations_name(std::string_view leaf) {
  return std::string(leaf) + std::string(kRegistrations);
}

std::optional<std::string_view> leaf_of_registrations(std::string_view name) {
  if (!name.ends_with(kRegistrations)) return std::nullopt;
  return name.substr(0, name.size() - kRegistrations.size());
}

}  // namespace dlock::file
