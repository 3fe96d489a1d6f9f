#include "engine/status_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

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

// In a sticky directory, such as /tmp, any user can create the file once it is gone, and only that
// user can replace it.  So an empty file of ours keeps the name.
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
  // Opening a redirected descriptor anew would overwrite what the command wrote.
  if (const auto fd = util::descriptor_named_by(path)) {
    out.descriptor_.reset(fcntl(*fd, F_DUPFD_CLOEXEC, 3));
    if (!out.descriptor_) return refused(path, complaint());
    return out;
  }
  struct stat st {};
  if (lstat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    return refused(path, "is no regular file: give another path, or /dev/fd/N");
  }
  if (!remove_old(path)) return refused(path, complaint());
  return out;
}

void StatusFile::write(const std::string& key, const Outcome& outcome) {
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
  const bool written =
      descriptor_ ? util::write_all(descriptor_.get(), text) : replace_file(path_, text);
  if (!written) {
    util::log(util::Level::error,
              refused(path_, "cannot write the outcome: " + complaint()).message);
  }
  descriptor_.reset();
}

}  // namespace dlock
