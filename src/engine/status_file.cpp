#include "engine/status_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "util/accounts.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"
#include "util/umask.hpp"

namespace dlock {
namespace {

using nlohmann::json;

Error refused(const std::string& path, const std::string& why) {
  return {Errc::invalid, "status file " + path + ": " + why};
}

std::string complaint() { return std::strerror(errno); }

// A pipe, a terminal or /dev/null.  Which device it is must be known before it is opened: to open a
// tape rewinds it.
bool is_written_to(const struct stat& st) {
  if (S_ISFIFO(st.st_mode)) return true;
  if (!S_ISCHR(st.st_mode)) return false;
  const unsigned kind = major(st.st_rdev);  // see admin-guide/devices.txt of the kernel
  const unsigned number = minor(st.st_rdev);
  const bool null = kind == 1 && number == 3;
  const bool console = kind == 4 && number < 64;
  const bool tty_or_console = kind == 5 && number < 2;
  const bool pseudo_terminal = kind >= 136 && kind <= 143;
  return null || console || tty_or_console || pseudo_terminal;
}

// Empty for a link that may be followed, and for what may be written to.
std::string why_not(const struct stat& st) {
  const bool link = S_ISLNK(st.st_mode);
  if (!link && !is_written_to(st)) {
    return S_ISCHR(st.st_mode) ? "is a device that dlock does not write to: give another path"
                               : "is no file, pipe or terminal: give another path";
  }
  if (st.st_uid == geteuid() || util::may_be_root(st.st_uid)) return "";
  return (link ? "is a link of user " : "belongs to user ") + std::to_string(st.st_uid) +
         ": give another path";
}

// What `path` names and is to be written to; none if it is to be replaced.
//
// A FIFO of another user would give him the outcome, and the reader one that he wrote; a link of
// his would have us write to what he chose.  So each link is looked at, and followed by hand; what
// is at the end is looked at before it is opened, and must be the same after that.
Result<Fd> open_special(const std::string& path) {
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    // To open a redirected descriptor anew would write over what the command wrote.
    if (const auto fd = util::descriptor_named_by(at)) {
      Fd copy(fcntl(*fd, F_DUPFD_CLOEXEC, 3));
      if (!copy) return refused(path, complaint());
      return copy;
    }
    Fd found(open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!found && errno == ENOENT) return Fd();
    struct stat st {};
    if (!found || fstat(found.get(), &st) != 0) return refused(path, complaint());
    // The text of /proc/1/fd/1 is no path.
    const bool leads_elsewhere = S_ISLNK(st.st_mode) && util::is_in_proc(found.get());
    if (leads_elsewhere) {
      found.reset(open(at.c_str(), O_PATH | O_CLOEXEC));
      if (!found || fstat(found.get(), &st) != 0) return refused(path, complaint());
    }
    if (S_ISREG(st.st_mode)) return Fd();
    if (const std::string why = why_not(st); !why.empty()) {
      return refused(path,
                     (at == path ? "" : "leads to " + util::printable(at) + ", which ") + why);
    }
    if (!S_ISLNK(st.st_mode)) {
      // Not by /proc/self/fd, which a chroot need not have.
      constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
      Fd out(open(at.c_str(), kFlags | (leads_elsewhere ? 0 : O_NOFOLLOW)));
      struct stat opened {};
      if (!out || fstat(out.get(), &opened) != 0) return refused(path, complaint());
      if (util::is_same_file(opened, st)) return out;
      return refused(path, "was replaced by another file just now");
    }
    std::string target(4'096, '\0');
    const ssize_t length = readlinkat(found.get(), "", target.data(), target.size());
    if (length <= 0) return refused(path, complaint());
    target.resize(static_cast<std::size_t>(length));
    at = target.front() == '/' ? target : at.substr(0, at.rfind('/') + 1) + target;
  }
  return refused(path, std::strerror(ELOOP));
}

// A new file beside `path`, to be renamed to it.  Its name is random: a dlock in another container
// can have the same pid, and the file that it has left must not make this open fail.
struct Temporary {
  explicit Temporary(const std::string& path)
      : name(path + ".dlock-" + util::random_id().substr(0, 12)),
        fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                0666 & ~util::users_umask())) {}

  std::string name;
  Fd fd;
};

bool replace_file(const std::string& path, std::string_view text) {
  const Temporary temporary(path);
  if (!temporary.fd) return false;
  if (util::write_all(temporary.fd.get(), text) &&
      rename(temporary.name.c_str(), path.c_str()) == 0)
    return true;
  const int error = errno;
  unlink(temporary.name.c_str());
  errno = error;
  return false;
}

// In a sticky directory, as /tmp, everybody can create the file once it is gone, and nobody but him
// can replace it.  An empty one of ours keeps the name.
bool remove_old(const std::string& path) {
  struct stat folder {};
  const std::string name = path.substr(0, path.rfind('/') + 1) + '.';
  if (stat(name.c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0) {
    return replace_file(path, "");
  }
  const Temporary temporary(path);
  if (!temporary.fd) return false;
  unlink(temporary.name.c_str());
  return unlink(path.c_str()) == 0 || errno == ENOENT;
}

}  // namespace

Result<StatusFile> StatusFile::prepare(const std::string& path) {
  StatusFile out;
  if (path.empty()) return out;
  out.path_ = path;
  auto special = open_special(path);
  if (!special) return special.error();
  out.special_ = std::move(*special);
  if (!out.special_ && !remove_old(path)) return refused(path, complaint());
  return out;
}

void StatusFile::write(const std::string& key, const Outcome& outcome) const {
  if (path_.empty()) return;
  const json fence = outcome.fence ? json(*outcome.fence) : json();
  const json reason = outcome.reason.empty() ? json() : json(outcome.reason);
  const json status{{"outcome", outcome.name},
                    {"exit_status", outcome.exit_status},
                    {"key", key},
                    {"backend", outcome.backend},
                    {"fence", fence},
                    {"waited_ms", outcome.waited.count()},
                    {"held_ms", outcome.held.count()},
                    {"reason", reason}};
  const std::string text =
      util::printable_json(status.dump(-1, ' ', false, json::error_handler_t::replace)) + '\n';
  const bool written = special_ ? util::write_all(special_.get(), text) : replace_file(path_, text);
  if (!written) {
    util::log(util::Level::error,
              refused(path_, "cannot write the outcome: " + complaint()).message);
  }
}

}  // namespace dlock
