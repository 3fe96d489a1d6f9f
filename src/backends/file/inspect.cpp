// Each dlock has a registration.  Other processes that have locked the lock file, as /proc/locks
// says, are other programs.
//
// Meanwhile dlocks come and go.  But a dlock registers before it locks, and unlocks before it
// removes its registration.  So a process that is in /proc/locks before and after the registrations
// are read, and is not registered, is another program.
#include "backends/file/inspect.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "backends/file/lock_file.hpp"
#include "backends/file/name.hpp"
#include "backends/file/proc_locks.hpp"
#include "backends/file/registrations.hpp"
#include "util/boot.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

Owner owner_of_process(pid_t pid) {
  Owner owner;
  owner.host = util::host_name();
  const std::string dir = "/proc/" + std::to_string(pid);
  owner.command = util::read_small_file(dir + "/comm", 64);
  if (owner.command.ends_with('\n')) owner.command.pop_back();
  struct stat st {};
  if (::stat(dir.c_str(), &st) == 0) owner.user = util::user_name(st.st_uid);
  // A process that has ended may have left the lock to another one, as in "exec 9>file; flock 9".
  if (!owner.command.empty()) owner.pid = pid;
  return owner;
}

// Since the grant, or since the wait has begun.
std::optional<Millis> time_since(const Record& record) {
  const auto passed = Clock::now().time_since_epoch() - std::chrono::nanoseconds(record.since_ns);
  if (passed.count() < 0) return std::nullopt;  // by the clock of another time namespace
  return std::chrono::duration_cast<Millis>(passed);
}

LockInfo::Holder holder_of(const Record& record) {
  LockInfo::Holder holder;
  holder.owner = record.owner;
  holder.acquired_at = record.acquired_at;
  holder.fence = record.fence;
  holder.slot = record.slot;
  holder.held = time_since(record);
  return holder;
}

LockInfo::Waiter waiter_of(const Record& record) {
  LockInfo::Waiter waiter;
  waiter.owner = record.owner;
  waiter.mode = record.mode;
  waiter.waiting = time_since(record);
  return waiter;
}

// Registrations are read one after the other, so a holder and the next one may both be found.  Only
// holders that can hold the lock together with the newest one count.
void add_holders(const std::vector<Registered>& holders, LockInfo& info) {
  const auto newest = std::max_element(holders.begin(), holders.end(),
                                       [](const Registered& a, const Registered& b) {
                                         return std::pair(a.record.fence, a.record.since_ns) <
                                                std::pair(b.record.fence, b.record.since_ns);
                                       });
  if (newest == holders.end()) return;
  info.mode = newest->record.mode;
  info.slots = newest->record.slots;
  for (const Registered& holder : holders) {
    const Record& record = holder.record;
    const bool beside = record.mode == info.mode && record.slots == info.slots &&
                        (info.mode != Mode::exclusive || holder.name == newest->name);
    if (beside) info.holders.push_back(holder_of(record));
  }
}

std::vector<FlockLine> foreign_locks(const std::vector<FlockLine>& lines,
                                     const Registrations& registrations) {
  std::vector<FlockLine> out;
  if (registrations.of_other_namespaces) return out;
  for (const FlockLine& line : lines) {
    const auto& known = registrations.lock_pids;
    if (std::find(known.begin(), known.end(), line.pid) == known.end()) out.push_back(line);
  }
  return out;
}

void add_foreign_locks(const std::vector<FlockLine>& lines, LockInfo& info) {
  for (const FlockLine& line : lines) {
    if (line.waiting) {
      LockInfo::Waiter waiter;
      waiter.owner = owner_of_process(line.pid);
      waiter.mode = line.exclusive ? Mode::exclusive : Mode::shared;
      info.waiters->push_back(std::move(waiter));
      continue;
    }
    if (info.holders.empty()) info.mode = line.exclusive ? Mode::exclusive : Mode::shared;
    LockInfo::Holder holder;
    holder.owner = owner_of_process(line.pid);
    holder.foreign = "flock";
    info.holders.push_back(std::move(holder));
  }
}

// `locks` were read before.
Result<LockInfo> look_at(const Place& place, std::string_view key,
                         const std::vector<FlockLine>& locks) {
  LockInfo info{.key = std::string(key)};
  info.waiters.emplace();
  struct stat file {};  // if there is no lock file: all zeros, which no locked file has
  (void)::fstatat(place.fd(), place.leaf.c_str(), &file, AT_SYMLINK_NOFOLLOW);
  const auto registrations = read_registrations(place, Whom::all);
  if (!registrations) return registrations.error();
  add_holders(registrations.value().holders, info);
  for (const Registered& waiter : registrations.value().waiters) {
    info.waiters->push_back(waiter_of(waiter.record));
  }
  const auto before =
      foreign_locks(lines_of(locks, file.st_dev, file.st_ino), registrations.value());
  if (before.empty()) return info;
  const auto after = lines_of(read_proc_locks(), file.st_dev, file.st_ino);
  std::vector<FlockLine> both;
  for (const FlockLine& line : before) {
    if (std::find(after.begin(), after.end(), line) != after.end()) both.push_back(line);
  }
  add_foreign_locks(both, info);
  return info;
}

// The keys in one folder, and for long names below it, that have registrations or whose lock file
// is locked.  False: the folder cannot be read.
bool collect_keys(int at, std::vector<std::string>& folders, std::string_view prefix,
                  const std::set<std::uint64_t>& locked, std::set<std::string>& keys) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::openat(at, folders.empty() ? "." : folders.back().c_str(), flags));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd ? ::fdopendir(fd.get()) : nullptr,
                                                    ::closedir);
  if (!listing) return errno == ENOENT;
  const int here = fd.release();
  bool read_all = true;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    // A key of 255 bytes is 765 encoded: three folders.
    if (is_folder_name(name) && folders.size() < 3) {
      folders.push_back(name);
      read_all = collect_keys(here, folders, prefix, locked, keys) && read_all;
      folders.pop_back();
      continue;
    }
    const auto registered = leaf_of_registrations(name);
    if (!registered && !locked.contains(entry->d_ino)) continue;
    const auto key = key_of(folders, registered.value_or(name));
    if (key && key->starts_with(prefix)) keys.insert(*key);
  }
  return read_all;
}

}  // namespace

Result<LockInfo> look(const std::shared_ptr<const LockDir>& dir, std::string_view key) {
  const auto place = place_of(dir, key, Missing::leave);
  if (!place) return place.error();
  if (place.value()) return look_at(*place.value(), key, read_proc_locks());
  LockInfo free{.key = std::string(key)};
  free.waiters.emplace();
  return free;
}

Result<std::vector<LockInfo>> look_at_all(const std::shared_ptr<const LockDir>& dir,
                                          std::string_view prefix) {
  const auto locks = read_proc_locks();
  std::set<std::uint64_t> locked;
  for (const FlockLine& line : locks) locked.insert(line.inode);
  std::vector<std::string> folders;
  std::set<std::string> keys;
  if (!collect_keys(dir->fd(), folders, prefix, locked, keys)) {
    return errno_error(dir->path(), "cannot list lock directory", errno);
  }
  std::vector<LockInfo> out;
  std::string unseen;
  for (const std::string& key : keys) {
    const auto place = place_of(dir, key, Missing::leave);
    if (!place || !place.value()) continue;
    auto info = look_at(*place.value(), key, locks);
    if (!info) {
      unseen += (unseen.empty() ? "" : "; ") + info.error().message;
    } else if (!info->holders.empty() || !info->waiters->empty()) {
      out.push_back(std::move(*info));
    }
  }
  if (!unseen.empty()) util::log(util::Level::warning, "not listed: " + unseen);
  return out;
}

Result<LockInfo> who_is_in_the_way(const Place& place, std::string_view key) {
  auto registrations = read_registrations(place, Whom::holders);
  if (!registrations) return registrations.error();
  LockInfo info{.key = std::string(key)};
  add_holders(registrations->holders, info);
  if (info.holders.empty()) {
    auto all = look_at(place, key, read_proc_locks());
    if (!all) return all.error();
    info = std::move(*all);
  }
  info.waiters.reset();
  info.waiter_count = registrations->waiting;
  return info;
}

std::uint64_t newest_fence(const Place& place) {
  const auto file = open_lock_file(place, place.leaf, Missing::leave);
  if (!file || !file.value()) return 0;
  const Content content = read_lock_file(file.value()->fd.get());
  return content.header ? content.header->fence : 0;
}

}  // namespace dlock::file
