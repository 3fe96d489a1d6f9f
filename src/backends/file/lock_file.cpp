#include "backends/file/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/exchange.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

Error refused(const std::string& path, const std::string& why) {
  return {Errc::denied, "lock file " + util::printable(path) + " " + why};
}

Error open_error(const std::string& path, int error) {
  if (error == ELOOP) return refused(path, "is a symbolic link: remove it");
  if (error == EISDIR) return refused(path, "is a directory: remove it");
  if (error == ENXIO || error == ENODEV) return refused(path, "is not a plain file: remove it");
  return errno_error(path, "cannot open lock file", error);
}

}  // namespace

std::string read_some(int fd) {
  std::string text(4'096, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t got =
        ::pread(fd, text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
    if (size < text.size() || size >= kLockHeaderSize + kMostRead) break;
    text.resize(kLockHeaderSize + kMostRead);
  }
  text.resize(size);
  return text;
}

std::string path_of(const Place& place, const std::string& name) {
  return place.shown + name.substr(place.leaf.size());
}

Result<void> check_file(const Place& place, const std::string& name, const struct stat& st) {
  const std::string path = path_of(place, name);
  if (!S_ISREG(st.st_mode)) return refused(path, "is not a plain file: remove it");
  if (st.st_nlink > 1) return refused(path, "has other names (hard links): remove it");
  if (!place.dir->sharing().shared && st.st_uid != geteuid() && st.st_uid != 0) {
    return refused(path, "belongs to user " + std::to_string(st.st_uid) + ", not to us (user " +
                             std::to_string(geteuid()) + ")");
  }
  return {};
}

// In sticky directories it is forbidden to open with O_CREAT a file that others have created
// (fs.protected_regular).  So an existing file is opened first, without it.
Result<std::optional<LockFile>> open_lock_file(const Place& place, const std::string& name,
                                               Missing missing) {
  LockFile file;
  file.name = name;
  while (!file.fd) {
    // O_NONBLOCK: a FIFO must not block before fstat() can tell that it is one.
    file.fd.reset(::openat(place.fd(), name.c_str(),
                           O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.fd) break;
    if (errno != ENOENT) return open_error(path_of(place, name), errno);
    if (missing == Missing::leave) return std::optional<LockFile>();
    file.fd = std::move(create(place.fd(), name, Kind::file, place.dir->sharing()).file);
    // Another process has created it at the same moment, or it is a link that leads nowhere.
    if (!file.fd && errno != EEXIST) return open_error(path_of(place, name), errno);
  }
  struct stat st {};
  if (::fstat(file.fd.get(), &st) != 0) return open_error(path_of(place, name), errno);
  // One that was replaced between open and fstat is found by the check after the lock.
  if (st.st_nlink != 0) {
    if (auto ok = check_file(place, name, st); !ok) return ok.error();
  }
  file.device = st.st_dev;
  file.inode = st.st_ino;
  return std::optional<LockFile>(std::move(file));
}

Result<LockFile> open_lock_file(const Place& place, const std::string& name) {
  auto file = open_lock_file(place, name, Missing::create);
  if (!file) return file.error();
  return std::move(**file);
}

Result<bool> try_flock(LockFile& file, const Place& place, int operation) {
  const Deadline asked = Clock::now();
  int outcome;
  do {
    outcome = ::flock(file.fd.get(), operation | LOCK_NB);
  } while (outcome != 0 && errno == EINTR);
  if (util::exchanges_shown()) {
    const int error = errno;
    const char* const refused = error == EWOULDBLOCK ? "held" : std::strerror(error);
    util::log_exchange("lock file " + path_of(place, file.name),
                       operation == LOCK_SH ? "LOCK_SH" : "LOCK_EX",
                       outcome == 0 ? "granted" : refused, asked);
    errno = error;
  }
  if (outcome == 0) {
    file.locked_by = getpid();
    return true;
  }
  if (errno == EWOULDBLOCK) return false;
  return flock_error(path_of(place, file.name), errno);
}

void unlock(LockFile& file) {
  ::flock(file.fd.get(), LOCK_UN);
  file.fd.reset();
}

Result<bool> is_in_place(const LockFile& file, const Place& place) {
  struct stat st {};
  const std::string path = path_of(place, file.name);
  const bool is_there = ::lstat(path.c_str(), &st) == 0;
  if (is_there && st.st_dev == file.device && st.st_ino == file.inode) return true;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) {
    return errno_error(path, "lock file", errno);
  }
  if (auto there = place.dir->still_there(); !there) return there.error();
  if (!place.folder) return false;
  return not_in_place(file, place);
}

Error not_in_place(const LockFile& file, const Place& place) {
  return {Errc::lost,
          "lock file " + util::printable(path_of(place, file.name)) + " was deleted or replaced"};
}

Content read_lock_file(int fd) {
  const std::string text = read_some(fd);
  Content content{.header = parse_header(text)};
  // After a power failure a file that was never synced may hold nothing but zeros.
  const bool was_written =
      text.size() > kMostRead || text.find_first_not_of('\0') != std::string::npos;
  content.foreign = was_written && !content.header;
  return content;
}

Result<std::optional<std::uint64_t>> write_fence(const LockFile& file, const Place& place,
                                                 Claim claim) {
  const Content last = read_lock_file(file.fd.get());
  if (last.foreign) {
    util::log(util::Level::warning,
              "lock file " + place.shown +
                  " has content that dlock did not write: the lock works, but DLOCK_FENCE is not " +
                  "set; remove the file while nobody holds the lock");
    return std::optional<std::uint64_t>();
  }
  const NextGrant next = next_grant(last.header, util::utc_now_us(), claim.mode, claim.slots);
  if (auto ok = write_at(file, place, format_header(next.header), 0); !ok) return ok.error();
  if (next.sync) {
    if (::fdatasync(file.fd.get()) != 0) {
      return errno_error(place.shown, "cannot sync lock file", errno);
    }
    if (!last.header) ::fsync(place.fd());  // not every file system can
  }
  return std::optional(next.header.fence);
}

Result<void> write_at(const LockFile& file, const Place& place, std::string_view bytes,
                      off_t offset) {
  const ssize_t wrote = ::pwrite(file.fd.get(), bytes.data(), bytes.size(), offset);
  if (wrote == static_cast<ssize_t>(bytes.size())) return {};
  const std::string path = util::printable(path_of(place, file.name));
  // A short write to a file means that the space ran out in the middle.
  const int error = wrote < 0 ? errno : ENOSPC;
  return Error{Errc::unreachable, "cannot write lock file " + path + ": " + std::strerror(error)};
}

}  // namespace dlock::file
