#include "core/trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/secret.hpp"
#include "util/accounts.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

constexpr std::size_t kLongestPassword = 4'096;
constexpr std::size_t kLongestKey = 65'536;

Error failed(const std::string& path, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return {denied ? Errc::denied : Errc::invalid, path + ": " + std::strerror(error)};
}

// If `path` does not exist, but would if a link on the way led somewhere: that link.  A file system
// that is not mounted leaves such links, and so does a Kubernetes ConfigMap that is gone.
std::optional<std::string> dangling_link(std::string path) {
  struct stat status {};
  while (!path.empty() && lstat(path.c_str(), &status) != 0) {
    const auto slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : path.find_last_not_of('/', slash) + 1);
  }
  if (path.empty() || stat(path.c_str(), &status) == 0) return std::nullopt;
  return path;
}

}  // namespace

Result<std::optional<TrustedFile>> read_trusted(const std::string& path, std::size_t most) {
  // O_NONBLOCK, or a FIFO in its place would keep us until somebody writes to it.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    if (errno != ENOENT && errno != ENOTDIR) return failed(path, errno);
    const auto link = dangling_link(path);
    if (!link) return std::optional<TrustedFile>();
    return Error{Errc::unreachable, path + ": " + (*link == path ? "is" : *link + " is") +
                                        " a link that leads nowhere; is something not mounted?"};
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return failed(path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Errc::invalid, path + ": is not a regular file"};
  if (status.st_uid != geteuid() && !util::may_be_root(status.st_uid)) {
    return Error{Errc::denied, path + ": belongs to user " + std::to_string(status.st_uid) +
                                   ", who could change it; it must belong to you or to root"};
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{Errc::denied, path + ": others can write to it (mode " +
                                   util::octal(status.st_mode) + "); run: chmod go-w " + path};
  }

  TrustedFile file{.owner = status.st_uid, .group = status.st_gid, .mode = status.st_mode};
  std::array<char, 16'384> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, errno);
    if (got == 0) return std::optional(std::move(file));
    file.text.append(buffer.data(), static_cast<std::size_t>(got));
    if (file.text.size() > most) {
      return Error{Errc::invalid,
                   path + ": is longer than " + std::to_string(most) + " bytes, the most allowed"};
    }
  }
}

// Root has given a file of its own to our group, or to us by an access list: so come the secrets of
// systemd (LoadCredential=) and Kubernetes (fsGroup; for root, too, in a read-only volume).
Result<void> check_private(const std::string& path, const TrustedFile& file,
                           std::string_view what) {
  if ((file.mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  struct statvfs volume {};
  const bool is_fixed = statvfs(path.c_str(), &volume) == 0 && (volume.f_flag & ST_RDONLY) != 0;
  const bool in_group = file.group == 0 || file.group == getegid() || group_member(file.group) != 0;
  const bool from_root = file.owner == 0 && (geteuid() != 0 || (is_fixed && in_group));
  if (from_root && (file.mode & S_IRWXO) == 0) return {};
  const char* const right = (file.mode & S_IRWXO) != 0 ? "0440" : "0400";
  const std::string remedy =
      is_fixed ? std::string("its volume is read-only: give it mode ") + right +
                     " where it is from (Kubernetes: defaultMode)"
               : std::string("run: chmod ") + (from_root ? "o-rwx " : "go-rwx ") + path;
  return Error{Errc::denied, path + ": holds " + std::string(what) +
                                 ", and others can read it (mode " + util::octal(file.mode) +
                                 "); " + remedy};
}

namespace {

Result<std::string> read_private(const std::string& path, std::size_t most, std::string_view what) {
  hide_memory();
  auto file = read_trusted(path, most);
  if (!file) return file.error();
  if (!file.value()) return failed(path, ENOENT);
  if (auto ok = check_private(path, *file.value(), what); !ok) return ok.error();
  return std::move(file.value()->text);
}

}  // namespace

Result<std::string> read_key(const std::string& path) {
  auto key = read_private(path, kLongestKey, "a private key");
  if (!key) return Error{key.error().code, "the key " + key.error().message};
  return key;
}

Result<std::string> read_password(const std::string& path) {
  auto password = read_private(path, kLongestPassword, "a password");
  if (!password) return password;
  if (password->ends_with('\n')) password->pop_back();
  if (password->ends_with('\r')) password->pop_back();  // of an editor on Windows
  if (password->empty()) return Error{Errc::invalid, path + ": is empty; it must hold a password"};
  if (password->find('\0') != std::string::npos) {
    return Error{Errc::invalid, path + ": holds a NUL byte, which no password can"};
  }
  return password;
}

}  // namespace dlock
