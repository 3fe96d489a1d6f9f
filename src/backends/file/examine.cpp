#include "backends/file/examine.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "backends/file/file_backend.hpp"
#include "backends/file/lock_dir.hpp"
#include "backends/file/name.hpp"
#include "backends/file/state_dir.hpp"
#include "core/checks.hpp"
#include "util/host.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// What is known of the directory.
struct Facts {
  std::string server;  // its path
  std::shared_ptr<const LockDir> dir;

  std::string client() const { return server; }
};

using Look = std::optional<Seen>;

Look scope(const Facts& facts) {
  const bool is_for_all = facts.dir->sharing().shared;
  return Seen{std::string("locks are seen ") +
                  (is_for_all ? "by the users of this directory" : "by this user") +
                  " on this machine only",
              Severity::note};
}

Look rights(const Facts& facts) {
  struct stat st {};
  if (::fstat(facts.dir->fd(), &st) != 0) return std::nullopt;
  return Seen{"owner " + util::user_name(st.st_uid) + ", mode " + util::octal(st.st_mode & 07777U)};
}

Look file_system(const Facts& facts) {
  if (const char* network = network_of(facts.dir->fd())) return Seen{network, Severity::fail};
  struct statfs fs {};
  const bool is_in_memory = ::fstatfs(facts.dir->fd(), &fs) == 0 && fs.f_type == TMPFS_MAGIC;
  if (!is_in_memory) return Seen{"local"};
  return Seen{"in memory (tmpfs)", facts.dir->is_usual() ? Severity::ok : Severity::warn};
}

// systemd mounts /tmp/systemd-private-… on /tmp: a line of mountinfo has the former as its fourth
// word, the latter as its fifth (proc_pid_mountinfo(5)).
Look private_tmp(const Facts& facts) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string id, parent, device, root, point, rest;
  while (mounts >> id >> parent >> device >> root >> point && std::getline(mounts, rest)) {
    const bool is_above = facts.server.starts_with(point + '/');
    if (!is_above || root.find("systemd-private-") == std::string::npos) continue;
    return Seen{point + " belongs to one service (PrivateTmp)", Severity::warn};
  }
  return std::nullopt;
}

constexpr std::array kChecks{
    Check<Facts>{"file-scope", scope,
                 "The same job on another machine, or of another user, runs at the same time.",
                 "name a server: -b redis://HOST, or see man dlock-config"},
    Check<Facts>{"file-directory", rights},
    Check<Facts>{"file-system", file_system,
                 "Locks on a network file system can be lost without a sign. In memory, "
                 "done-marks and counters are lost when the machine boots.",
                 "mkdir -m 700 /var/lib/locks; dlock run -b file:///var/lib/locks ..."},
    Check<Facts>{"file-private-tmp", private_tmp,
                 "What runs outside this service has another directory of the same name.",
                 "use a directory that is not below /tmp: -b file:///var/lib/locks"},
};

class FileExamination final : public Examination {
 public:
  explicit FileExamination(const Url& url)
      : by_default_(url.path.empty()),
        trusts_all_(url.query.contains("trust")),
        path_(by_default_ ? default_path() : url.path) {}

  Findings look(Deadline deadline, Cancel cancel) override;
  bool may_try() const override { return dir_ != nullptr; }
  bool may_try_marks() const override {
    const auto marks = open_mark_dir(*dir_, Missing::leave);
    return marks && marks.value() != nullptr;
  }
  Result<void> remove_traces(std::string_view key, std::span<const std::string> owners,
                             Deadline deadline) override;

 private:
  const bool by_default_;
  const bool trusts_all_;
  const std::string path_;
  std::shared_ptr<const LockDir> dir_;
};

Findings FileExamination::look(Deadline, Cancel) {
  Findings out;
  if (by_default_ && ::access(path_.c_str(), F_OK) != 0) {
    out.push_back({"file-directory", Severity::note, path_, "is not there yet, so no lock is tried",
                   "The first run makes it.", "dlock run -k x -- true"});
    return out;
  }
  auto dir = LockDir::open(by_default_ ? "" : path_, trusts_all_ ? Trust::all : Trust::named);
  if (!dir) {
    out.push_back(cannot_look("file-directory", path_, dir.error()));
    return out;
  }
  dir_ = std::move(*dir);
  check_all<Facts>(kChecks, {path_, dir_}, out);
  return out;
}

// No other key has a lock file whose name begins so: no encoded key has a `~` in it.
Result<void> FileExamination::remove_traces(std::string_view key, std::span<const std::string>,
                                            Deadline) {
  const auto place = place_of(dir_, key, Missing::leave);
  if (!place) return place.error();
  const int folder = ::openat(place.value()->fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = folder < 0 ? nullptr : ::fdopendir(folder);
  while (const dirent* entry = entries == nullptr ? nullptr : ::readdir(entries)) {
    const std::string name = entry->d_name;
    const std::string& leaf = place.value()->leaf;
    if (name != leaf && !name.starts_with(leaf + '~')) continue;
    if (::unlinkat(folder, name.c_str(), 0) != 0) ::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
  }
  if (entries != nullptr) ::closedir(entries);
  return {};
}

}  // namespace

Result<std::unique_ptr<Examination>> examine(const Target& target, Millis) {
  if (auto ok = place(target); !ok) return ok.error();
  return std::make_unique<FileExamination>(target.url);
}

}  // namespace dlock::file
