#include "cli/other_users.hpp"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <span>

#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::cli {

OtherUsers other_users_directories() {
  constexpr std::string_view kStem = "/tmp/dlock-";  // of /tmp/dlock-1000
  OtherUsers out;
  glob_t found{};
  if (geteuid() != 0 || glob("/tmp/dlock-*", 0, nullptr, &found) != 0) return out;
  for (const std::string path : std::span(found.gl_pathv, found.gl_pathc)) {
    const auto uid = util::parse_int(path.substr(kStem.size()), 1, UINT32_MAX - 1);
    struct stat about {};
    const bool is_theirs = uid && lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
                           about.st_uid == static_cast<uid_t>(*uid);
    if (!is_theirs) continue;
    out.user = util::user_name(about.st_uid);
    out.places += (out.places.empty() ? "" : ", ") + path + " (" + out.user + ')';
  }
  globfree(&found);
  return out;
}

}  // namespace dlock::cli
