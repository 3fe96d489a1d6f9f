#include "backends/file/state_dir.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// No lock has these names: an encoded key has no ~.
const std::string kCounters = "~ids";
const std::string kMarks = "~done";

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
                                   " has no home directory to keep counters and marks in: name a "
                                   "directory, as in --backend file:///DIRECTORY"};
  }
  return StatePath{found->pw_dir, {".local", "state", "dlock"}};
}

Result<std::string> make_path(const StatePath& where) {
  std::string path = where.base;
  for (const std::string& part : where.parts) {
    path += '/' + part;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return errno_error(path, "cannot create directory", errno);
    }
  }
  return path;
}

// The path of a folder that exists.
Result<std::string> make_folder(const LockDir& locks, const std::string& name) {
  std::shared_ptr<const LockDir> own;
  if (locks.is_usual()) {
    const auto where = default_state();
    if (!where) return where.error();
    const auto path = make_path(where.value());
    if (!path) return path.error();
    auto opened = LockDir::open_for_records(path.value());
    if (!opened) return opened.error();
    own = std::move(*opened);
  }
  const LockDir& parent = own ? *own : locks;
  std::string path = parent.path() + '/' + name;
  if (!create(parent.fd(), name, Kind::folder, parent.sharing()).done && errno != EEXIST) {
    return errno_error(path, "cannot create directory", errno);
  }
  return path;
}

// The path of a folder; none if there is none, or none that this user may know of: then it has
// written nothing to it either.
std::optional<std::string> find_folder(const LockDir& locks, const std::string& name) {
  std::string path = locks.path();
  if (locks.is_usual()) {
    const auto where = default_state();
    if (!where) return std::nullopt;
    path = where.value().base;
    for (const std::string& part : where.value().parts) path += '/' + part;
  }
  path += '/' + name;
  struct stat st {};
  const bool is_missing =
      ::lstat(path.c_str(), &st) != 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES);
  return is_missing ? std::nullopt : std::make_optional(std::move(path));
}

}  // namespace

Result<std::shared_ptr<const LockDir>> open_counter_dir(const LockDir& locks) {
  const auto path = make_folder(locks, kCounters);
  return path ? LockDir::open(path.value()) : path.error();
}

Result<std::shared_ptr<const LockDir>> open_mark_dir(const LockDir& locks, Missing missing) {
  if (missing == Missing::create) {
    const auto path = make_folder(locks, kMarks);
    return path ? LockDir::open_for_records(path.value()) : path.error();
  }
  const auto path = find_folder(locks, kMarks);
  return path ? LockDir::open_for_records(*path) : std::shared_ptr<const LockDir>();
}

void warn_of_memory(const LockDir& dir, std::string_view consequence) {
  struct statfs fs {};
  if (::fstatfs(dir.fd(), &fs) != 0) return;
  if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC) return;
  util::log(util::Level::warning,
            util::printable(dir.path()) + " is in memory: " + std::string(consequence));
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
