#include "backends/file/state_dir.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// No lock has this name: an encoded key has no ~.
const std::string kFolder = "~ids";

// A directory, and what may have to be created below it.
struct StatePath {
  std::string base;
  std::vector<std::string> parts;
};

Result<StatePath> default_state() {
  if (geteuid() == 0) return StatePath{"/var/lib", {"dlock"}};
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  ::getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  struct stat st {};
  if (found == nullptr || found->pw_dir == nullptr || ::stat(found->pw_dir, &st) != 0) {
    return Error{Errc::denied, "user " + std::to_string(geteuid()) +
                                   " has no home directory, where counters could be kept: name a "
                                   "directory, as in --backend file:///DIRECTORY"};
  }
  return StatePath{found->pw_dir, {".local", "state", "dlock"}};
}

Result<std::shared_ptr<const LockDir>> open_default() {
  const auto where = default_state();
  if (!where) return where.error();
  std::string path = where.value().base;
  for (const std::string& part : where.value().parts) {
    path += '/' + part;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return errno_error(path, "cannot create directory", errno);
    }
  }
  return LockDir::open(path);
}

}  // namespace

Result<std::shared_ptr<const LockDir>> open_counter_dir(const LockDir& locks) {
  std::shared_ptr<const LockDir> own;
  if (locks.is_usual()) {
    auto opened = open_default();
    if (!opened) return opened.error();
    own = std::move(*opened);
  }
  const LockDir& parent = own ? *own : locks;
  const std::string path = parent.path() + '/' + kFolder;
  if (!create(parent.fd(), kFolder, Kind::folder, parent.sharing()).done && errno != EEXIST) {
    return errno_error(path, "cannot create directory", errno);
  }
  return LockDir::open(path);
}

void warn_of_memory(const LockDir& dir) {
  struct statfs fs {};
  if (::fstatfs(dir.fd(), &fs) != 0) return;
  if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC) return;
  util::log(util::Level::warning,
            util::printable(dir.path()) + " is in memory: its counters begin again after a boot");
}

// A directory that we may not read has not been created by us.
Result<void> sync_with_parents(std::string path) {
  for (;;) {
    const Fd dir(::open(path.empty() ? "/" : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (dir && ::fsync(dir.get()) != 0 && errno != EINVAL && errno != EROFS) {
      return errno_error(path, "cannot make durable", errno);
    }
    if (path.empty()) return {};
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace dlock::file
