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

namespace dlock {
namespace {

using nlohmann::json;

// A pipe or a terminal: to be written to, not to be replaced.
bool is_special(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// The descriptor that /dev/stdout, /dev/fd/3 or a link to one of them stands for, whatever is
// behind it: to open a redirected one anew would write over what the command wrote.
std::optional<int> descriptor_named_by(std::string path) {
  for (int links = 0; links < 8; ++links) {
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
      if (!path.starts_with(folder)) continue;
      const auto fd = util::parse_int(std::string_view(path).substr(folder.size()), 0, 1 << 30);
      if (fd) return static_cast<int>(*fd);
    }
    std::string target(4'096, '\0');
    const ssize_t length = readlink(path.c_str(), target.data(), target.size());
    if (length <= 0) return std::nullopt;
    target.resize(static_cast<std::size_t>(length));
    path = target.front() == '/' ? target : path.substr(0, path.rfind('/') + 1) + target;
  }
  return std::nullopt;
}

// A new file beside `path`, to be renamed to it.  Its name is random: a dlock in another container
// can have the same pid, and the file that it has left must not make this open fail.
struct Temporary {
  explicit Temporary(const std::string& path)
      : name(path + ".dlock-" + util::random_id().substr(0, 12)),
        fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666)) {}

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

bool remove_old(const std::string& path) {
  const Temporary temporary(path);
  if (!temporary.fd) return false;
  unlink(temporary.name.c_str());
  return unlink(path.c_str()) == 0 || errno == ENOENT;
}

std::string complaint(const std::string& path) {
  return "status file " + path + ": " + std::strerror(errno);
}

}  // namespace

Result<StatusFile> StatusFile::prepare(const std::string& path) {
  StatusFile out;
  if (path.empty()) return out;
  out.path_ = path;
  if (const auto fd = descriptor_named_by(path)) {
    out.special_.reset(fcntl(*fd, F_DUPFD_CLOEXEC, 3));
    if (!out.special_) return Error{Errc::invalid, complaint(path)};
  } else if (is_special(path)) {
    out.special_.reset(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!out.special_) return Error{Errc::invalid, complaint(path)};
  } else if (!remove_old(path)) {
    return Error{Errc::invalid, complaint(path)};
  }
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
  const std::string text = status.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  const bool written = special_ ? util::write_all(special_.get(), text) : replace_file(path_, text);
  if (!written) util::log(util::Level::error, complaint(path_));
}

}  // namespace dlock
