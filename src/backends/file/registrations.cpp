// A registration is probed with a shared lock, which several readers can have at once.  Its process
// has an exclusive lock for as long as it lives.  So a reader that is granted the probe may remove
// the file: its name has the time and the pid, so no living process has another file of that name.
#include "backends/file/registrations.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "backends/file/flock_wait.hpp"
#include "backends/file/name.hpp"
#include "util/boot.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr Millis kFolderPatience{2'000};

// The names of the registrations to open.  `waiting` counts the waiters.  None, with errno ENOENT,
// if there is no folder.
std::optional<std::vector<std::string>> names_in(const Fd& folder, Whom whom, unsigned& waiting) {
  const int copy = folder ? ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy >= 0 ? ::fdopendir(copy) : nullptr,
                                                    ::closedir);
  if (!listing) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!is_registration(entry->d_name)) continue;
    const bool waits = entry->d_name[0] == kWaiter;
    if (waits) ++waiting;
    if (!waits || whom == Whom::all) names.emplace_back(entry->d_name);
  }
  // The time is behind the first letter.
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return a.compare(1, a.npos, b, 1, b.npos) < 0; });
  return names;
}

// Of a holder or a waiter.
bool has_record(State state) {
  return state == State::waits || state == State::holds || state == State::ended ||
         state == State::broken;
}

std::optional<Registered> parse(const std::string& name, std::string_view text) {
  if (text.size() < kRegistrationHeadSize) return std::nullopt;
  const auto pid = util::parse_int(text.substr(kPidAt, kPidDigits), 0, INT32_MAX);
  const auto space = util::parse_int(text.substr(kNamespaceAt, kNamespaceDigits), 0, INT64_MAX);
  if (!pid || !space) return std::nullopt;
  Registered entry{.name = name, .state = static_cast<State>(text[0]), .record = {}};
  entry.lock_pid = static_cast<pid_t>(*pid);
  entry.of_this_namespace = static_cast<std::uint64_t>(*space) == util::pid_namespace();
  if (entry.state == State::trying || entry.state == State::released) return entry;
  if (!has_record(entry.state)) return std::nullopt;
  // A holder whose record cannot be read is listed all the same.
  auto record = parse_record(text.substr(kRegistrationHeadSize));
  if (record) entry.record = std::move(*record);
  if (entry.state == State::ended) {
    entry.record.owner.ended = true;
    entry.record.owner.pid = 0;
  }
  return entry;
}

void add(Registrations& registrations, Registered entry) {
  registrations.lock_pids.push_back(entry.lock_pid);
  registrations.of_other_namespaces = registrations.of_other_namespaces || !entry.of_this_namespace;
  if (!has_record(entry.state)) return;
  auto& side = entry.state == State::waits ? registrations.waiters : registrations.holders;
  side.push_back(std::move(entry));
}

}  // namespace

// The file of a process that begins to wait or is granted the lock is renamed, perhaps after its
// name was read.
Fd open_registration(const Fd& folder, std::string& name, int flags) {
  Fd file;
  for (int names = 0; !file && names < 3; ++names) {
    if (names > 0) name[0] = name[0] == kWaiter ? kHolder : kWaiter;
    file.reset(::openat(folder.get(), name.c_str(),
                        flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!file && errno != ENOENT) break;
  }
  return file;
}

Result<Registrations> read_registrations(const Place& place, Whom whom) {
  Registrations registrations;
  const Fd folder = open_registrations_folder(place);
  auto names = names_in(folder, whom, registrations.waiting);
  if (!names) {
    if (errno == ENOENT) return registrations;
    return errno_error(path_of(place, registrations_name(place.leaf)), "cannot read", errno);
  }
  // Waiters that are not opened are taken to be alive.
  bool any_alive = whom != Whom::all && registrations.waiting > 0;
  for (std::string& name : *names) {
    const Fd file = open_registration(folder, name, O_RDONLY);
    struct stat st {};
    if (!file && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO)) {
      return errno_error(path_of(place, registrations_name(place.leaf)) + '/' + name, "cannot read",
                         errno);
    }
    if (!file) continue;  // removed, or not made by dlock, which could open it
    if (::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
      ::unlinkat(folder.get(), name.c_str(), 0);  // its process is dead, and does not rename it
      continue;
    }
    any_alive = true;
    if (auto entry = parse(name, read_some(file.get()))) add(registrations, std::move(*entry));
    const auto& holders = registrations.holders;
    if (whom == Whom::one_holder && !holders.empty() &&
        holders.back().record.mode != Mode::exclusive) {
      break;
    }
  }
  if (!any_alive) ::unlinkat(place.fd(), registrations_name(place.leaf).c_str(), AT_REMOVEDIR);
  return registrations;
}

Result<LockFile> lock_registrations(const Place& place, std::int64_t for_pid, Deadline deadline,
                                    Cancel cancel) {
  const std::string name = registrations_name(place.leaf);
  deadline = std::max(deadline, after(Clock::now(), kFolderPatience));
  for (;;) {
    LockFile folder{.name = name, .fd = open_registrations_folder(place)};
    if (!folder.fd) return errno_error(path_of(place, name), "cannot open", errno);
    auto got = try_flock(folder, place, LOCK_EX);
    if (!got) return got.error();
    if (*got) return folder;
    // An operator may remove the folder if a stopped process has it locked.
    const Deadline look = std::min(deadline, after(Clock::now(), kFolderPatience));
    const auto end = wait_flock(place, folder, LOCK_EX, for_pid, look, cancel);
    if (!end) return end.error();
    if (end.value() == FlockWait::End::granted) return folder;
    if (end.value() == FlockWait::End::cancelled) {
      return Error{Errc::cancelled, "stopped waiting for " + util::printable(place.shown)};
    }
    if (Clock::now() < deadline) continue;
    return Error{Errc::unreachable, "another process has locked " +
                                        util::printable(path_of(place, name)) +
                                        " and does not go on: is it stopped?"};
  }
}

Result<void> check_claim(const Place& place, std::string_view key, Claim claim) {
  const auto registrations = read_registrations(place, Whom::one_holder);
  if (!registrations) return registrations.error();
  for (const Registered& holder : registrations.value().holders) {
    const Claim held{holder.record.mode, holder.record.slots};
    if (held.mode != Mode::exclusive && held != claim) return mode_conflict(key, claim, held);
  }
  return {};
}

}  // namespace dlock::file
