#include "backends/file/lock_dir.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backends/file/name.hpp"
#include "util/log.hpp"
#include "util/text.hpp"
#include "util/umask.hpp"

namespace dlock::file {
namespace {

using util::printable;

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Error denied(std::string_view path, std::string_view why) {
  return {Errc::denied, "lock directory " + printable(path) + " " + std::string(why)};
}

// In words what O_NOFOLLOW and O_DIRECTORY have refused.
Error open_error(std::string_view path, int error) {
  struct stat st {};
  const bool link = ::lstat(std::string(path).c_str(), &st) == 0 && S_ISLNK(st.st_mode);
  if (link) return denied(path, "is a symbolic link: give the directory itself");
  if (error == ENOTDIR) return denied(path, "is not a directory");
  if (error == ENOENT) {
    return {Errc::unreachable,
            "lock directory " + printable(path) +
                " does not exist: create it (mkdir -m 700), or see man dlock-file "
                "if several users need it"};
  }
  return errno_error(path, "lock directory", error);
}

// A user who can rename files in the directory can cause two holders at once.  The mode of a
// directory that was named says which users may; in other directories, only this user and root.
Result<Sharing> check_owner(std::string_view path, const struct stat& st, Trust trust) {
  const mode_t others = st.st_mode & (S_IWGRP | S_IWOTH);
  Sharing sharing;
  if (others != 0 && trust != Trust::only_ours) {
    if ((others & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0 && trust != Trust::all) {
      return denied(path,
                    "is writable by everybody and not sticky: chmod o-w or chmod +t it, or see "
                    "trust=all in man dlock-file");
    }
    sharing.shared = true;
    sharing.group = st.st_gid;
    sharing.folder |= st.st_mode & (S_ISGID | S_ISVTX);
    // What is created in the directory is for its group.
    if (others == S_IWGRP && trust != Trust::all &&
        has_access_list(std::string(path), ListOf::directory_and_content)) {
      return denied(path,
                    "has an access list, or a default one, which may let others than its "
                    "group write: remove it (setfacl -b -m g::rwx " +
                        util::in_shell(path) +
                        "; without -m g::rwx if its group does not share the locks)");
    }
    if ((others & S_IWGRP) != 0) {
      sharing.file |= 0060;
      sharing.folder |= 0070;
    }
    if ((others & S_IWOTH) != 0) {
      sharing.file |= 0066;
      sharing.folder |= 0077;
    }
    return sharing;
  }
  const bool ours = st.st_uid == geteuid();
  if (!ours && (trust == Trust::only_ours || st.st_uid != 0)) {
    return denied(path, "belongs to user " + std::to_string(st.st_uid) + ", not to us (user " +
                            std::to_string(geteuid()) + ")");
  }
  if (others != 0) return denied(path, "is writable by others: chmod go-w it");
  return sharing;
}

Result<void> check_writable(int fd, std::string_view path) {
  if (::faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
  if (errno == EACCES) return denied(path, "is not writable by us");
  return errno_error(path, "lock directory", errno);
}

void warn_of_network(int fd, std::string_view path) {
  const char* const kind = network_of(fd);
  if (kind == nullptr) return;
  util::log(util::Level::warning, "lock directory " + printable(path) + " is on " + kind +
                                      ": locks there can be lost without a sign, and may not " +
                                      "reach other machines; use a local directory or a server");
}

// In a directory without the setgid bit, a file has the group of its creator, who can give it the
// group of the directory if he is a member.  Another user may have put a hard link to another file
// of this user in the place of a folder: that file keeps its group.
void give_to_group(int at, const std::string& name, Kind kind, const Fd& file, gid_t group) {
  const Fd found(file ? -1 : ::openat(at, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const int fd = file ? file.get() : found.get();
  struct stat st {};
  if (::fstat(fd, &st) != 0 || st.st_gid == group) return;
  const bool created = kind == Kind::file || S_ISDIR(st.st_mode);
  if (created) (void)!::fchownat(fd, "", static_cast<uid_t>(-1), group, AT_EMPTY_PATH);
}

}  // namespace

// One path for each user, whatever the environment: cron has no XDG_RUNTIME_DIR, a login shell has.
std::string default_path() {
  if (geteuid() == 0) return "/run/dlock";
  return "/tmp/dlock-" + std::to_string(geteuid());
}

Error errno_error(std::string_view path, std::string_view doing, int error) {
  const bool refused = error == EACCES || error == EPERM || error == ELOOP || error == EISDIR ||
                       error == ENXIO || error == ENOTDIR;
  return {refused ? Errc::denied : Errc::unreachable,
          std::string(doing) + " " + printable(path) + ": " + std::strerror(error)};
}

// ENOLCK: as NFS without a lock daemon returns.
Error flock_error(std::string_view path, int error) {
  Error out = errno_error(path, "cannot lock", error);
  if (error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP) {
    out.message +=
        "; the file system there has no locks: name a directory on another one, as in "
        "--backend file:///DIR";
  }
  return out;
}

const char* network_of(int fd) {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return nullptr;
  // Of statfs(2), and of the kernel's sources where linux/magic.h lacks them.
  constexpr std::array<std::pair<long, const char*>, 10> kNetwork{{{NFS_SUPER_MAGIC, "NFS"},
                                                                   {0xFF534D42, "SMB"},
                                                                   {0xFE534D42, "SMB"},
                                                                   {SMB_SUPER_MAGIC, "SMB"},
                                                                   {0x65735546, "FUSE"},
                                                                   {0x00C36400, "CephFS"},
                                                                   {V9FS_MAGIC, "9p"},
                                                                   {0x0BD00BD0, "Lustre"},
                                                                   {0x47504653, "GPFS"},
                                                                   {AFS_SUPER_MAGIC, "AFS"}}};
  for (const auto& [type, name] : kNetwork) {
    if (fs.f_type == type) return name;
  }
  return nullptr;
}

Result<std::shared_ptr<LockDir>> LockDir::open_checked(const std::string& path, Trust trust) {
  std::vector<Ancestor> ancestors;
  Fd fd = open_noting_ancestors(path, ancestors);
  if (!fd) return open_error(path, errno);
  return checked(std::move(fd), path, trust, ancestors);
}

Result<std::shared_ptr<LockDir>> LockDir::checked(Fd fd, const std::string& path, Trust trust,
                                                  const std::vector<Ancestor>& ancestors) {
  auto dir = std::make_shared<LockDir>();
  dir->path_ = path;
  dir->fd_ = std::move(fd);
  struct stat st {};
  if (::fstat(dir->fd(), &st) != 0) return errno_error(path, "lock directory", errno);
  auto sharing = check_owner(path, st, trust);
  if (!sharing) return sharing.error();
  if (trust != Trust::all) {
    if (auto ok = check_ancestors(path, st, ancestors); !ok) return ok.error();
  }
  dir->trust_ = trust;
  dir->sharing_ = *sharing;
  dir->device_ = st.st_dev;
  dir->inode_ = st.st_ino;
  struct stat usual {};
  dir->usual_ = !sharing->shared && ::stat(default_path().c_str(), &usual) == 0 &&
                util::is_same_file(st, usual);
  return dir;
}

Result<std::shared_ptr<const LockDir>> LockDir::open(const std::string& given, Trust trust) {
  const bool by_default = given.empty();
  const std::string path = by_default ? default_path() : given;
  // Another user may have created it, or there is no /tmp.
  const auto unusable = [by_default](Error error) {
    if (by_default) error.message += "; name a directory of your own: --backend file:///DIR";
    return error;
  };
  if (by_default && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return unusable(errno_error(path, "cannot create lock directory", errno));
  }
  auto dir = open_checked(path, by_default ? Trust::only_ours : trust);
  if (!dir) return unusable(dir.error());
  (*dir)->by_default_ = by_default;
  if (auto ok = (*dir)->check_for_locks(); !ok) return unusable(ok.error());
  return std::shared_ptr<const LockDir>(std::move(*dir));
}

Result<std::shared_ptr<const LockDir>> LockDir::open_for_records(const std::string& path) {
  auto dir = open_checked(path, Trust::only_ours);
  if (!dir) return dir.error();
  return std::shared_ptr<const LockDir>(std::move(*dir));
}

Result<std::shared_ptr<const LockDir>> LockDir::folder_for_records(const std::string& name,
                                                                   Trust trust) const {
  const std::string shown = path_ + '/' + name;
  Fd folder(::openat(fd(), name.c_str(), kOpenFlags));
  if (!folder) return open_error(shown, errno);
  auto dir = checked(std::move(folder), shown, trust, {});
  if (!dir) return dir.error();
  return std::shared_ptr<const LockDir>(std::move(*dir));
}

Result<void> LockDir::check_for_locks() const {
  if (auto ok = check_writable(fd(), path_); !ok) return ok;
  warn_of_network(fd(), path_);
  return {};
}

Result<std::shared_ptr<const LockDir>> LockDir::open_again() const {
  return open(by_default_ ? std::string() : path_, trust_);
}

Result<void> LockDir::still_there() const {
  struct stat now {};
  const bool gone = ::stat(path_.c_str(), &now) != 0;
  if (gone && errno != ENOENT && errno != ENOTDIR) {
    return Error{Errc::unreachable,
                 "lock directory " + printable(path_) + ": " + std::strerror(errno)};
  }
  if (gone) {
    return Error{Errc::lost, "lock directory " + printable(path_) + " was removed"};
  }
  if (device_ != now.st_dev || inode_ != now.st_ino) {
    return Error{Errc::lost, "lock directory " + printable(path_) + " was replaced"};
  }
  return {};
}

Result<std::optional<Place>> place_of(std::shared_ptr<const LockDir> dir, std::string_view key,
                                      Missing missing) {
  Name name = name_of(key);
  Place place{.dir = std::move(dir), .folder = {}, .leaf = std::move(name.leaf), .shown = {}};
  place.shown = place.dir->path();
  for (const std::string& folder : name.folders) {
    place.shown += '/' + folder;
    auto next = open_folder(place.fd(), folder, place.shown, place.dir->sharing(), missing);
    if (!next) return next.error();
    if (!*next) return std::optional<Place>();
    place.folder = std::move(**next);
  }
  place.shown += '/' + place.leaf;
  return std::optional<Place>(std::move(place));
}

Result<std::optional<Fd>> open_folder(int at, const std::string& name, const std::string& shown,
                                      const Sharing& sharing, Missing missing) {
  Fd folder(::openat(at, name.c_str(), kOpenFlags));
  if (!folder && errno == ENOENT && missing == Missing::leave) return std::optional<Fd>();
  if (!folder && errno == ENOENT) {
    if (!create(at, name, Kind::folder, sharing).done && errno != EEXIST) {
      return errno_error(shown, "cannot create", errno);
    }
    folder.reset(::openat(at, name.c_str(), kOpenFlags));
  }
  struct stat st {};
  if (!folder || ::fstat(folder.get(), &st) != 0) return open_error(shown, errno);
  if (!sharing.shared) {
    if (auto ok = check_owner(shown, st, Trust::named); !ok) return ok.error();
  }
  return std::optional(std::move(folder));
}

Created create(int at, const std::string& name, Kind kind, const Sharing& sharing) {
  Created out;
  const char* const path = name.c_str();
  // The mode must be right from the first instant on: another user may open the file at once.
  (void)util::users_umask();
  switch (kind) {
    case Kind::file:
      out.file.reset(::openat(
          at, path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, sharing.file));
      out.done = static_cast<bool>(out.file);
      break;
    case Kind::folder:
      out.done = ::mkdirat(at, path, sharing.folder) == 0;
      break;
  }
  const int error = errno;
  if (out.done && sharing.shared) give_to_group(at, name, kind, out.file, sharing.group);
  errno = error;
  return out;
}

}  // namespace dlock::file
