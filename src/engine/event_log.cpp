// Whole lines.  The kernel does not mix the lines that processes append with one write(2) each, in
//   a local file or, up to 4096 bytes, in a pipe.
// Rotation.  The file is opened for each line, so a file that was renamed before gets none.
// Signals.  A write can raise SIGPIPE, or SIGXFSZ at the limit of a file's size.  All processes of
//   a run block both, and the launcher ignores those that it has raised itself.

#include "engine/event_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "util/accounts.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"
#include "util/umask.hpp"

namespace dlock {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLongestLine = 4'096;
constexpr std::size_t kLongestText = 1'024;
constexpr int kAppend = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::atomic<bool> is_closed{false};
std::atomic<bool> has_warned{false};

Error cannot_log(const std::string& path, const std::string& why) {
  return {Errc::invalid, "event log " + path + ": " + why};
}

std::string why_it_failed(int error) {
  if (error == ELOOP) return "is a link: give another path";
  if (error == ENXIO) return "is a pipe that no process reads";
  if (error == EAGAIN) return "the reader of the pipe is too slow";
  return std::strerror(error);
}

// Empty if the file may be written to.  If we could open a file of another user, its group shares
// it with us, unless all users may write to it.
std::string objection_to(const struct stat& st) {
  if (S_ISLNK(st.st_mode)) return why_it_failed(ELOOP);
  if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) return "is no file or pipe";
  const bool is_shared = (st.st_mode & (S_IWGRP | S_IWOTH)) == S_IWGRP;
  if (st.st_uid == geteuid() || is_shared || util::may_be_root(st.st_uid)) return "";
  return "belongs to user " + std::to_string(st.st_uid) + ": give another path";
}

Result<Fd> open_to_append(const std::string& path) {
  Fd fd(open(path.c_str(), kAppend | O_CREAT | O_NOFOLLOW, 0666 & ~util::users_umask()));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0) return cannot_log(path, why_it_failed(errno));
  if (const std::string why = objection_to(st); !why.empty()) return cannot_log(path, why);
  return fd;
}

// The job and dlock must write at one offset of a file.  A pipe is opened again, so that the job's
// own descriptor does not become non-blocking.
Fd copy_of(int inherited) {
  struct stat st {};
  const bool is_file = fstat(inherited, &st) == 0 && S_ISREG(st.st_mode);
  const std::string name = "/proc/self/fd/" + std::to_string(inherited);
  return Fd(is_file ? fcntl(inherited, F_DUPFD_CLOEXEC, 3) : open(name.c_str(), kAppend));
}

void cut_texts(ordered_json& value, std::size_t most) {
  for (auto& member : value) {
    if (member.is_object()) cut_texts(member, most);
    if (!member.is_string() || member.get_ref<std::string&>().size() <= most) continue;
    member = util::clipped(member.get_ref<std::string&>(), most);
  }
}

// One byte of a text can take six as JSON.
std::string text_of(ordered_json line) {
  for (std::size_t most = kLongestText;; most /= 2) {
    cut_texts(line, most);
    const auto text = line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    std::string printable = util::printable_json(text) + '\n';
    if (printable.size() <= kLongestLine) return printable;
  }
}

// On a full disk, half a line would spoil the next one.
void take_back(int fd, ssize_t wrote) {
  struct stat st {};
  const off_t end = lseek(fd, 0, SEEK_CUR);
  if (fstat(fd, &st) != 0 || st.st_size != end || ftruncate(fd, end - wrote) != 0) return;
  lseek(fd, -wrote, SEEK_CUR);
}

void warn_once(const Error& error) {
  if (has_warned.exchange(true)) return;
  util::log(util::Level::warning, error.message + "; events of this run are missing there");
}

}  // namespace

Result<EventLog> EventLog::open(const std::string& path, const ordered_json& always) {
  EventLog out;
  out.path_ = path;
  out.always_ = always.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (const auto inherited = util::descriptor_named_by(path)) {
    out.kept_ = copy_of(*inherited);
    if (!out.kept_) return cannot_log(path, std::strerror(errno));
    return out;
  }
  // Opening a device can have effects, so it is refused before that.
  struct stat st {};
  const std::string why = lstat(path.c_str(), &st) == 0 ? objection_to(st) : "";
  if (!why.empty()) return cannot_log(path, why);
  auto fd = open_to_append(path);
  if (!fd) return fd.error();
  if (S_ISFIFO(st.st_mode)) out.kept_ = std::move(*fd);
  return out;
}

void EventLog::write(std::string_view event, std::string_view key, const ordered_json& more) const {
  if (path_.empty() || is_closed) return;
  ordered_json line{{"time", util::utc_now()}, {"event", event}, {"key", key}};
  if (!more.empty()) line.update(more);
  line.update(ordered_json::parse(always_));
  const std::string text = text_of(std::move(line));
  const Result<Fd> file = kept_ ? Fd() : open_to_append(path_);
  if (!file) return warn_once(file.error());
  const int fd = kept_ ? kept_.get() : file.value().get();
  const ssize_t wrote = ::write(fd, text.data(), text.size());
  if (wrote == static_cast<ssize_t>(text.size())) return;
  const std::string why = wrote < 0 ? why_it_failed(errno) : "there is no room for a whole line";
  if (wrote > 0) take_back(fd, wrote);
  warn_once(cannot_log(path_, why));
}

// Another thread may be writing: its descriptor is replaced, not closed.
void EventLog::close() const {
  is_closed = true;
  const Fd null(kept_ ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1);
  if (null) dup3(null.get(), kept_.get(), O_CLOEXEC);
}

}  // namespace dlock
