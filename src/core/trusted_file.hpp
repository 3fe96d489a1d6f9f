// Files that decide where locks are and how to get in: read only if nobody else could have written
// them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace dlock {

struct TrustedFile {
  std::string text;
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0;
};

/// Reads a regular file of at most `most` bytes that belongs to us or to root and that nobody else
/// can write.  None if there is no such file; Errc::denied or Errc::invalid, naming the file and
/// what to do, for anything else; Errc::unreachable if it may be there, behind a link that leads
/// nowhere.  Never blocks.
Result<std::optional<TrustedFile>> read_trusted(const std::string& path, std::size_t most);

/// Errc::denied, saying how to mend it, if others can read this file, which holds `what`.  The
/// group may read a file of root's if we are not root; or if it is root's group or ours, and the
/// volume is read-only.
Result<void> check_private(const std::string& path, const TrustedFile& file, std::string_view what);

/// The text of a private file with a private key.  Hides the memory of this process before it
/// reads.  Errc::invalid also if there is no such file.
Result<std::string> read_key(const std::string& path);

/// The same for a password: the text without one newline at the end.
Result<std::string> read_password(const std::string& path);

}  // namespace dlock
