// The access lists of directories, as setfacl(1) makes them: acl(5).
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

namespace dlock::file {

/// A user or a group.
struct Writer {
  bool is_group = false;
  unsigned id = 0;

  bool operator==(const Writer&) const = default;
};

/// Whom the group bits of the mode let write to the directory `path`, of status `st`: its group, or
/// those whom its access list names instead.  None: the list cannot be read.
std::optional<std::vector<Writer>> writers_by_group_bits(const std::string& path,
                                                         const struct stat& st);

}  // namespace dlock::file
