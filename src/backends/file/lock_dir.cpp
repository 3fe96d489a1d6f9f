#include "backends/file/lock_dir.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "backends/file/name.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using util::printable;

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::string default_path() {
  if (geteuid() == 0) return "/run/lock/dlock";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/dlock";
  return "/tmp/dlock-" + std::to_string(geteuid());
}

Error denied(std::string_view path, std::string_view why) {
  return {Errc::denied, "lock directory " + printable(path) + " " + std::string(why)};
}

// What O_NOFOLLOW and O_DIRECTORY refused, in words.
Error open_error(std::string_view path, int error) {
  struct stat st {};
  const bool link = ::lstat(std::string(path).c_str(), &st) == 0 && S_ISLNK(st.st_mode);
  if (link) return denied(path, "is a symbolic link: give the directory itself");
  if (error == ENOTDIR) return denied(path, "is not a directory");
  if (error == ENOENT) {
    return {Errc::unreachable, "lock directory " + printable(path) +
                                   " does not exist: create it, for everybody who uses its locks"};
  }
  return errno_error(path, "lock directory", error);
}

// Whoever can rename files in the directory can let two holders in: only we, root, or in a sticky
// directory the owner of each file may.
Result<void> check_owner(std::string_view path, const struct stat& st, bool by_default) {
  const bool ours = st.st_uid == geteuid();
  if (!ours && (by_default || st.st_uid != 0)) {
    return denied(path, "belongs to user " + std::to_string(st.st_uid) + ", not to us (user " +
                            std::to_string(geteuid()) + ")");
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0) {
    return denied(path, "is writable by others and not sticky: chmod go-w or chmod +t it");
  }
  return {};
}

Result<void> check_writable(int fd, std::string_view path) {
  if (::faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
  if (errno == EACCES) return denied(path, "is not writable by us");
  return errno_error(path, "lock directory", errno);
}

void warn_of_network(int fd, std::string_view path) {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return;
  constexpr long kCifs = 0xFF534D42;
  constexpr long kSmb2 = 0xFE534D42;
  constexpr long kFuse = 0x65735546;
  const char* kind = nullptr;
  if (fs.f_type == NFS_SUPER_MAGIC) kind = "NFS";
  if (fs.f_type == kCifs || fs.f_type == kSmb2 || fs.f_type == SMB_SUPER_MAGIC) kind = "SMB";
  if (fs.f_type == kFuse) kind = "FUSE";
  if (kind == nullptr) return;
  util::log(util::Level::warning, "lock directory " + printable(path) + " is on " + kind +
                                      ": locks there can be lost without a sign, and may not " +
                                      "reach other machines; use a local directory or a server");
}

}  // namespace

Error errno_error(std::string_view path, std::string_view doing, int error) {
  const bool refused = error == EACCES || error == EPERM || error == ELOOP || error == EISDIR ||
                       error == ENXIO || error == ENOTDIR;
  return {refused ? Errc::denied : Errc::unreachable,
          std::string(doing) + " " + printable(path) + ": " + std::strerror(error)};
}

Result<std::shared_ptr<const LockDir>> LockDir::open(const std::string& given) {
  const bool by_default = given.empty();
  auto dir = std::make_shared<LockDir>();
  dir->path_ = by_default ? default_path() : given;
  const std::string& path = dir->path_;
  dir->fd_.reset(::open(path.c_str(), kOpenFlags));
  if (!dir->fd_ && errno == ENOENT && by_default) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return errno_error(path, "cannot create lock directory", errno);
    }
    dir->fd_.reset(::open(path.c_str(), kOpenFlags));
  }
  if (!dir->fd_) return open_error(path, errno);
  struct stat st {};
  if (::fstat(dir->fd(), &st) != 0) return errno_error(path, "lock directory", errno);
  if (auto ok = check_owner(path, st, by_default); !ok) return ok.error();
  if (auto ok = check_writable(dir->fd(), path); !ok) return ok.error();
  warn_of_network(dir->fd(), path);
  return std::shared_ptr<const LockDir>(std::move(dir));
}

Result<void> LockDir::still_there() const {
  struct stat ours {};
  struct stat now {};
  const bool gone = ::stat(path_.c_str(), &now) != 0;
  if (gone && errno != ENOENT && errno != ENOTDIR) {
    return Error{Errc::unreachable,
                 "lock directory " + printable(path_) + ": " + std::strerror(errno)};
  }
  if (gone) {
    return Error{Errc::lost, "lock directory " + printable(path_) + " was removed"};
  }
  if (::fstat(fd(), &ours) != 0 || ours.st_dev != now.st_dev || ours.st_ino != now.st_ino) {
    return Error{Errc::lost, "lock directory " + printable(path_) + " was replaced"};
  }
  return {};
}

Result<std::optional<Place>> place_of(std::shared_ptr<const LockDir> dir, std::string_view key,
                                      Missing missing) {
  Name name = name_of(key);
  Place place{.dir = std::move(dir), .leaf = std::move(name.leaf)};
  place.shown = place.dir->path();
  for (const std::string& folder : name.folders) {
    place.shown += '/' + folder;
    if (missing == Missing::create && ::mkdirat(place.fd(), folder.c_str(), 0700) != 0 &&
        errno != EEXIST) {
      return errno_error(place.shown, "cannot create", errno);
    }
    Fd next(::openat(place.fd(), folder.c_str(), kOpenFlags));
    if (!next && errno == ENOENT && missing == Missing::leave) return std::optional<Place>();
    struct stat st {};
    if (!next || ::fstat(next.get(), &st) != 0) return open_error(place.shown, errno);
    if (auto ok = check_owner(place.shown, st, false); !ok) return ok.error();
    place.folder = std::move(next);
  }
  place.shown += '/' + place.leaf;
  return std::optional<Place>(std::move(place));
}

}  // namespace dlock::file
