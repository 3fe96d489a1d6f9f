// A registration is probed with a shared lock, which many readers can have at once.  Its owner has
// an exclusive one for as long as it lives, so whoever is granted the probe may remove the file: no
// other file ever gets its name.
#include "backends/file/roster.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "backends/file/lock_file.hpp"
#include "backends/file/name.hpp"
#include "util/boot.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// The names of those who are wanted.  `waiting` counts the waiters.  None, with errno ENOENT, if
// there is no folder.
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
         state == State::told;
}

std::optional<Registered> parse(const std::string& name, std::string_view text) {
  if (text.size() < kHeadSize) return std::nullopt;
  const auto pid = util::parse_int(text.substr(kPidAt, kPidDigits), 0, INT32_MAX);
  const auto space = util::parse_int(text.substr(kNamespaceAt, kNamespaceDigits), 0, INT64_MAX);
  if (!pid || !space) return std::nullopt;
  Registered entry{.name = name, .state = static_cast<State>(text[0]), .record = {}};
  entry.lock_pid = static_cast<pid_t>(*pid);
  entry.of_this_namespace = static_cast<std::uint64_t>(*space) == util::pid_namespace();
  if (entry.state == State::trying || entry.state == State::let_go) return entry;
  if (!has_record(entry.state)) return std::nullopt;
  // Without a record it is somebody who cannot be named.
  if (auto record = parse_record(text.substr(kHeadSize))) entry.record = std::move(*record);
  if (entry.state == State::ended) {
    entry.record.owner.ended = true;
    entry.record.owner.pid = 0;
  }
  return entry;
}

void add(Roster& roster, Registered entry) {
  roster.lock_pids.push_back(entry.lock_pid);
  roster.of_other_namespaces = roster.of_other_namespaces || !entry.of_this_namespace;
  if (!has_record(entry.state)) return;
  auto& side = entry.state == State::waits ? roster.waiters : roster.holders;
  side.push_back(std::move(entry));
}

}  // namespace

// One that begins to wait or is granted the lock is renamed, perhaps since its name was read.
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

Result<Roster> read_roster(const Place& place, Whom whom) {
  Roster roster;
  const Fd folder = open_roster(place);
  auto names = names_in(folder, whom, roster.waiting);
  if (!names) {
    if (errno == ENOENT) return roster;
    return errno_error(path_of(place, roster_name(place.leaf)), "cannot read", errno);
  }
  bool any_alive = whom != Whom::all && roster.waiting > 0;
  for (std::string& name : *names) {
    const Fd file = open_registration(folder, name, O_RDONLY);
    struct stat st {};
    if (!file && (errno == EMFILE || errno == ENFILE)) {
      return errno_error(path_of(place, roster_name(place.leaf)) + '/' + name, "cannot read",
                         errno);
    }
    if (!file) continue;  // gone, or none of ours: we can open what we make
    if (::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
      ::unlinkat(folder.get(), name.c_str(), 0);  // not renamed any more: its owner is dead
      continue;
    }
    any_alive = true;
    if (auto entry = parse(name, read_some(file.get()))) add(roster, std::move(*entry));
    const auto& holders = roster.holders;
    if (whom == Whom::one_holder && !holders.empty() &&
        holders.back().record.mode != Mode::exclusive) {
      break;
    }
  }
  if (!any_alive) ::unlinkat(place.fd(), roster_name(place.leaf).c_str(), AT_REMOVEDIR);
  return roster;
}

Result<void> check_claim(const Place& place, std::string_view key, Claim claim) {
  const auto roster = read_roster(place, Whom::one_holder);
  if (!roster) return roster.error();
  for (const Registered& holder : roster.value().holders) {
    const Claim held{holder.record.mode, holder.record.slots};
    if (held.mode != Mode::exclusive && held != claim) return mode_conflict(key, claim, held);
  }
  return {};
}

}  // namespace dlock::file
