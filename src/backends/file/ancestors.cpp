// A user who can rename an ancestor of a lock directory can cause two holders at once: he moves it
// away while a job holds a lock in it, and creates a new one, in which the next job is granted the
// lock.
//
// These users can do that: the owner of an ancestor, and each user who may write to it.  If it is
// sticky, as /tmp is, a writer must own the entry, too.  The entry is the next ancestor or the lock
// directory, and its owner is checked anyway.  The owner of a link in a sticky directory can make
// it lead elsewhere.
//
// Each ancestor is opened by its name in the one before, and the kernel follows no link.  So
// exactly those directories are checked that lead to the descriptor which is used afterwards.
#include "backends/file/ancestors.hpp"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "util/accounts.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr int kMostLinks = 40;  // as many as the kernel follows

// A directory, or else the link itself.  Without O_DIRECTORY, autofs would not mount a directory
// that it mounts on demand, as homes are.
Fd open_ancestor(int at, const std::string& name, struct stat& st) {
  constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::openat(at, name.c_str(), kLook | O_DIRECTORY));
  if (!fd && errno == ENOTDIR) fd.reset(::openat(at, name.c_str(), kLook));
  if (!fd || ::fstat(fd.get(), &st) != 0) return {};
  return fd;
}

}  // namespace

Fd open_noting_ancestors(const std::string& path, std::vector<Ancestor>& ancestors) {
  std::string rest = path;
  std::string shown;  // of `at`; empty for "/"
  Fd at;
  int links = 0;
  for (;;) {
    if (rest.starts_with('/')) {
      shown.clear();
      Ancestor root{.path = "/"};
      at = open_ancestor(AT_FDCWD, "/", root.st);
      if (!at) return {};
      ancestors.push_back(std::move(root));
    }
    rest.erase(0, rest.find_first_not_of('/'));
    const auto slash = rest.find('/');
    const std::string name = rest.substr(0, slash);
    if (slash == std::string::npos) {
      return Fd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    }
    rest.erase(0, slash);
    Ancestor ancestor{.path = shown + '/' + name};
    Fd next = open_ancestor(at.get(), name, ancestor.st);
    if (!next) return {};
    if (S_ISLNK(ancestor.st.st_mode)) {
      ancestor.in_proc = util::is_in_proc(next.get());
      std::array<char, PATH_MAX> target;
      const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size());
      if (length < 0) return {};
      if (++links > kMostLinks) {
        errno = ELOOP;
        return {};
      }
      rest.insert(0, target.data(), static_cast<std::size_t>(length));
      ancestors.push_back(std::move(ancestor));
      continue;
    }
    rest.erase(0, rest.find_first_not_of('/'));
    shown = ancestor.path;
    ancestors.push_back(std::move(ancestor));
    at = std::move(next);
  }
}

Result<void> check_ancestors(const std::string& path, const struct stat& dir,
                             const std::vector<Ancestor>& ancestors) {
  const bool shared = (dir.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  // Its members may delete each lock file there anyway.
  const bool group_asked_in = (dir.st_mode & S_IWGRP) != 0 && (dir.st_mode & S_ISVTX) == 0;
  const auto trusted = [&](uid_t user) {
    return user == geteuid() || util::may_be_root(user) || (shared && user == dir.st_uid) ||
           (group_asked_in && util::is_member(user, dir.st_gid));
  };
  for (const Ancestor& ancestor : ancestors) {
    const struct stat& st = ancestor.st;
    const auto unsafe = [&](const std::string& why, const std::string& way_out) {
      return Error{Errc::denied, "lock directory " + util::printable(path) +
                                     " could be replaced by others, as " +
                                     util::printable(ancestor.path) + ' ' + why + ": " + way_out};
    };
    const auto mode = [&] { return "(mode " + util::octal(st.st_mode) + ')'; };
    const bool link = S_ISLNK(st.st_mode);
    if (!trusted(st.st_uid)) {
      const std::string owner = "user " + std::to_string(st.st_uid);
      return link ? unsafe("is a symbolic link of " + owner, "use the path it leads to")
                  : unsafe("belongs to " + owner, "use another directory, or chown it");
    }
    if (ancestor.in_proc) {
      return unsafe("is a link in /proc, which need not lead where its text says",
                    "name the directory itself");
    }
    if (link || (st.st_mode & S_ISVTX) != 0) continue;
    if ((st.st_mode & S_IWOTH) != 0) {
      return unsafe("is writable by everybody and not sticky " + mode(),
                    "use another directory, or chmod o-w or chmod +t it");
    }
    if ((st.st_mode & S_IWGRP) == 0) continue;
    if (has_access_list(ancestor.path, ListOf::directory)) {
      return unsafe("has an access list that may let others write",
                    "use another directory, or chmod g-w " + util::in_shell(ancestor.path));
    }
    const bool asked_in = group_asked_in && st.st_gid == dir.st_gid;
    if (!asked_in && !util::is_private_group(st.st_gid, st.st_uid)) {
      return unsafe("is writable by group " + std::to_string(st.st_gid) + ' ' + mode(),
                    "use another directory, chmod g-w it, or let this group write to the lock "
                    "directory, too");
    }
  }
  return {};
}

// The entries of the list are not read: to know who is in a group takes more than the list, and an
// administrator who looks at the mode does not see them.
bool has_access_list(const std::string& path, ListOf what) {
  const auto has = [&](const char* name) {
    return ::lgetxattr(path.c_str(), name, nullptr, 0) >= 0 ||
           (errno != ENODATA && errno != ENOTSUP);
  };
  return has("system.posix_acl_access") ||
         (what == ListOf::directory_and_content && has("system.posix_acl_default"));
}

}  // namespace dlock::file
