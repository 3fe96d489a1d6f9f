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

// A directory, and the folders that may have to be created below it.
struct StatePath {
  std::string base;
  std::vector<std::string> parts;
};

constexpr std::string_view kNameOne = ": name a directory, as in --backend file:///DIRECTORY";

Result<StatePath> default_state() {
  if (geteuid() == 0) return StatePath{"/var/lib", {"dlock"}};
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16'384);
  ::getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  struct stat st {};
  if (found == nullptr || found->pw_dir == nullptr || ::stat(found->pw_dir, &st) != 0) {
    return Error{Errc::denied, "user " + std::to_string(geteuid()) +
                                   " has no home directory to keep counters and marks in" +
                                   std::string(kNameOne)};
  }
  return StatePath{found->pw_dir, {".local", "state", "dlock"}};
}

Result<std::string> path_of(const StatePath& where, Missing missing) {
  std::string path = where.base;
  for (const std::string& part : where.parts) {
    path += '/' + part;
    if (missing == Missing::leave || ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int reason = errno;
    Error error = errno_error(path, "cannot create directory", reason);
    if (error.code == Errc::denied || reason == EROFS) error.message += kNameOne;
    return error;
  }
  return path;
}

// True also if this user may not look there: then it has written nothing there.
bool is_missing(const std::string& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) != 0 &&
         (errno == ENOENT || errno == ENOTDIR || errno == EACCES);
}

using Opened = Result<std::shared_ptr<const LockDir>>;

// Null if it is missing and Missing::leave is given.
Opened open_default(Missing missing) {
  const auto where = default_state();
  if (!where) return missing == Missing::create ? Opened(where.error()) : Opened(nullptr);
  const auto path = path_of(where.value(), missing);
  if (!path) return path.error();
  if (missing == Missing::leave && is_missing(path.value())) return Opened(nullptr);
  return LockDir::open_for_records(path.value());
}

// As above.
Opened open_state(const LockDir& locks, const std::string& name, Missing missing) {
  std::shared_ptr<const LockDir> own;
  if (locks.is_usual()) {
    auto opened = open_default(missing);
    if (!opened || !*opened) return opened;
    own = std::move(*opened);
  }
  const LockDir& parent = own ? *own : locks;
  const std::string path = parent.path() + '/' + name;
  if (missing == Missing::leave) {
    if (is_missing(path)) return Opened(nullptr);
  } else if (!create(parent.fd(), name, Kind::folder, parent.sharing()).done && errno != EEXIST) {
    return errno_error(path, "cannot create directory", errno);
  }
  return parent.folder_for_records(name, own ? Trust::only_ours : locks.trust());
}

void warn(const LockDir& dir, std::string_view kind, std::string_view consequence) {
  util::log(util::Level::warning, util::printable(dir.path()) + " is " + std::string(kind) + ": " +
                                      std::string(consequence));
}

}  // namespace

Opened open_counter_dir(const LockDir& locks) {
  auto dir = open_state(locks, kCounters, Missing::create);
  if (!dir) return dir;
  if (auto ok = (*dir)->check_for_locks(); !ok) return ok.error();
  return dir;
}

Opened open_mark_dir(const LockDir& locks, Missing missing) {
  return open_state(locks, kMarks, missing);
}

void warn_of_loss(const LockDir& dir, std::string_view what) {
  struct statfs fs {};
  const bool is_in_memory =
      ::fstatfs(dir.fd(), &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
  if (is_in_memory) warn(dir, "in memory", std::string(what) + " after a boot");
  for (const std::string_view cleaned : {"/tmp", "/var/tmp"}) {
    if (!dir.path().starts_with(std::string(cleaned) + '/')) continue;
    warn(dir, "below " + std::string(cleaned),
         std::string(what) + " when a cleaner deletes what is old there");
  }
}

void warn_of_other_machines(const LockDir& locks, const LockDir& dir) {
  const char* const kind = locks.is_usual() ? network_of(dir.fd()) : nullptr;
  if (kind == nullptr) return;
  warn(dir, std::string("on ") + kind,
       "what dlock once remembers there may be shared by all machines, locks are not" +
           std::string(kNameOne));
}

// A directory that this user may not read was not created by it.
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
