// Records tell who holds a lock, /proc/locks tells whether that is still so: a record counts only
// while its file is flocked by the process that its `lock_pid` names.  Where the kernel's list does
// not have the file at all, the holder is dead, or was granted in a pid namespace that we cannot
// see, or the file system (overlay, btrfs) has another device number there than stat(2) tells: only
// then a shared lock is tried for an instant.  acquire() knows about that instant, and tries again
// when it was refused by a lock that nobody seems to hold.
//
// Files are read while others write them, so what does not fit together is looked at again.
#include "backends/file/inspect.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "backends/file/name.hpp"
#include "util/boot.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/process_title.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr int kLooks = 4;
// A dlock that has no record may be about to write one, which nobody announces: these many looks
// more, with pauses, until it counts as one that was stopped there, or whose record is gone.
constexpr int kPatientLooks = 6;
constexpr useconds_t kPauseUs = 5'000;

std::string of_process(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + '/' + file;
}

std::string process_name(pid_t pid) {
  std::string name = util::read_small_file(of_process(pid, "comm"), 64);
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

// A field of the process' stat file.  The name in field 2 may hold anything, so count from its
// closing bracket.
std::optional<std::int64_t> stat_field(pid_t pid, int number) {
  const std::string text = util::read_small_file(of_process(pid, "stat"), 1'024);
  auto at = text.rfind(')');
  for (int field = 2; field < number && at != std::string::npos; ++field) {
    at = text.find(' ', at + 1);
  }
  if (at == std::string::npos) return std::nullopt;
  return util::parse_int(std::string_view(text).substr(at + 1, text.find(' ', at + 1) - at - 1), 0,
                         INT64_MAX / 1'000);
}

// Since when the process runs: field 22, in clock ticks since the boot.
std::optional<Millis> process_age(pid_t pid, Deadline now) {
  const auto ticks = stat_field(pid, 22);
  if (!ticks) return std::nullopt;
  const Millis started{*ticks * 1'000 / sysconf(_SC_CLK_TCK)};
  return std::max(std::chrono::duration_cast<Millis>(now.time_since_epoch()) - started, Millis{0});
}

std::optional<pid_t> parent_of(pid_t pid) {
  const auto parent = stat_field(pid, 4);
  return parent ? std::optional(static_cast<pid_t>(*parent)) : std::nullopt;
}

Owner owner_of_process(pid_t pid) {
  Owner owner;
  owner.host = util::host_name();
  owner.pid = pid;
  owner.command = process_name(pid);
  struct stat st {};
  if (::stat(of_process(pid, "").c_str(), &st) == 0) owner.user = util::user_name(st.st_uid);
  return owner;
}

// What a dlock is to run: the word behind "--", and no more, since arguments may hold secrets.
std::string wrapped_command(pid_t pid) {
  const std::string words = util::read_small_file(of_process(pid, "cmdline"), 4'096);
  constexpr std::string_view kMark("\0--\0", 4);
  const auto mark = words.find(kMark);
  if (mark == std::string::npos) return process_name(pid);
  const std::string rest = words.substr(mark + kMark.size());
  return rest.substr(0, rest.find('\0'));
}

// The pid of the process that the user started, if this is the name of a helper of flock_wait.cpp.
std::optional<std::int64_t> waits_for(std::string_view process) {
  constexpr std::string_view kMark = "dlock-";
  if (!process.starts_with(kMark)) return std::nullopt;
  return util::parse_int(process.substr(kMark.size()), 1, INT32_MAX);
}

bool is_dlock(const Owner& process) {
  return process.command.starts_with("dlock") || process.command == util::kSupervisorName;
}

// Whoever took a lock and has ended since: perhaps a helper of ours, or a flock(1) whose shell has
// the descriptor.
bool has_ended(const Owner& process) { return process.command.empty(); }

// The process that the user started, of a helper or of the supervisor.
void name_the_front(Owner& process) {
  if (const auto pid = waits_for(process.command)) {
    process.pid = *pid;
  } else if (const auto parent = parent_of(static_cast<pid_t>(process.pid));
             parent && is_dlock(owner_of_process(*parent))) {
    process.pid = *parent;
  }
  process.command = wrapped_command(static_cast<pid_t>(process.pid));
}

LockInfo::Waiter waiter_of(const FlockLine& line, Deadline now) {
  LockInfo::Waiter waiter;
  waiter.owner = owner_of_process(line.pid);
  waiter.mode = line.exclusive ? Mode::exclusive : Mode::shared;
  waiter.waiting = process_age(line.pid, now);
  if (const auto pid = waits_for(waiter.owner.command)) {
    waiter.owner.pid = *pid;
    waiter.owner.command = wrapped_command(static_cast<pid_t>(*pid));
  }
  return waiter;
}

LockInfo::Holder holder_of(const Record& record) {
  LockInfo::Holder holder;
  holder.owner = record.owner;
  holder.acquired_at = record.acquired_at;
  holder.fence = record.fence;
  const auto held = Clock::now().time_since_epoch() - std::chrono::nanoseconds(record.acquired_ns);
  if (record.boot == util::boot_id() && held.count() >= 0) {
    holder.held = std::chrono::duration_cast<Millis>(held);
  }
  return holder;
}

// Of a lock without a record.
LockInfo::Holder unrecorded_holder(Owner process) {
  LockInfo::Holder holder;
  holder.owner = std::move(process);
  if (is_dlock(holder.owner)) {
    name_the_front(holder.owner);
    return holder;
  }
  holder.foreign = "flock";
  if (has_ended(holder.owner)) holder.owner.pid = 0;
  return holder;
}

// Through a description of its own, which closes and unlocks at once.  Only what was granted shows
// that nobody holds it: where the probe cannot be made (no descriptor left), somebody may.
bool probe_is_granted(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const Fd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return other && ::flock(other.get(), LOCK_SH | LOCK_NB) == 0;
}

// One look at the files of one key.
class Look {
 public:
  /// `suspects_before` are those of the look before.
  Look(const Place& place, const std::vector<FlockLine>& locks, std::vector<pid_t> suspects_before,
       bool last)
      : place_(place), locks_(locks), suspects_(std::move(suspects_before)), last_(last) {
    info.waiters.emplace();
  }

  LockInfo info;
  std::vector<pid_t> suspects;  // who seems to be no dlock
  bool unsettled = false;       // something did not fit together: perhaps it is being written
  std::optional<Error> error;   // a seat could not be read: its holder must not be overlooked

  void read(const LockFile& file) {
    const auto lines = lines_of(locks_, file.device, file.inode);
    const Content content = read_lock_file(file.fd.get());
    const bool live = content.record && is_live(file, *content.record, locks_);
    if (live) {
      info.mode = content.record->mode;
      info.holders.push_back(holder_of(*content.record));
    }
    // Under an exclusive holder seats are from another time: who takes one writes the header.
    if (!content.header || content.header->mode != Mode::exclusive) read_seats();
    add_foreign(lines, content, live);
    add_waiters(lines);
    add_slot_waiters();
    sort_waiters();
  }

 private:
  void read_seats() {
    for (unsigned number = 1;; ++number) {
      const auto seat = open_lock_file(place_, seat_name(place_.leaf, number), Missing::leave);
      if (!seat) error = seat.error();
      if (!seat || !seat.value()) return;
      const LockFile& file = *seat.value();
      for (const FlockLine& line : lines_of(locks_, file.device, file.inode)) {
        if (line.waiting) at_seats_.push_back(line);
      }
      const auto record = read_seat(file.fd.get());
      if (!record || !is_live(file, *record, locks_)) continue;
      info.mode = record->mode;
      info.slots = record->slots;
      info.holders.push_back(holder_of(*record));
      known_.push_back(record->main_pid);
    }
  }

  // What locks the lock file and is none of our holders.  One of ours looks like that for the
  // moment between the lock and its record, so only what was seen twice is believed.
  void add_foreign(const std::vector<FlockLine>& lines, const Content& content, bool live) {
    const auto& record = content.record;
    for (const FlockLine& line : lines) {
      if (line.waiting || (line.exclusive && live)) continue;
      if (line.exclusive && record && record->given_up && record->lock_pid == line.pid) continue;
      if (!line.exclusive && std::count(known_.begin(), known_.end(), line.pid) > 0) continue;
      const Owner process = owner_of_process(line.pid);
      const bool may_write = !content.foreign && (is_dlock(process) || has_ended(process));
      const bool seen_before = std::count(suspects_.begin(), suspects_.end(), line.pid) > 0;
      suspects.push_back(line.pid);
      unsettled = unsettled || !seen_before || may_write;
      if (!seen_before || (may_write && !last_)) continue;
      LockInfo::Holder holder = unrecorded_holder(process);
      if (info.holders.empty()) info.mode = line.exclusive ? Mode::exclusive : Mode::shared;
      info.holders.push_back(std::move(holder));
    }
  }

  void add_waiters(const std::vector<FlockLine>& lines) {
    for (const FlockLine& line : lines) {
      if (line.waiting) info.waiters->push_back(waiter_of(line, now_));
    }
  }

  // The head of their queue waits for all seats at once, the others for the gate.
  void add_slot_waiters() {
    const auto gate = open_lock_file(place_, gate_name(place_.leaf), Missing::leave);
    if (gate && gate.value()) {
      const auto lines = lines_of(locks_, gate.value()->device, gate.value()->inode);
      at_seats_.insert(at_seats_.end(), lines.begin(), lines.end());
    }
    std::vector<std::int64_t> heads;
    for (const FlockLine& line : at_seats_) {
      if (!line.waiting) continue;
      LockInfo::Waiter waiter = waiter_of(line, now_);
      const bool at_gate = gate && gate.value() && line.inode == gate.value()->inode;
      if (!at_gate && std::count(heads.begin(), heads.end(), waiter.owner.pid) > 0) continue;
      if (!at_gate) heads.push_back(waiter.owner.pid);
      waiter.mode = Mode::slots;
      info.waiters->push_back(std::move(waiter));
    }
  }

  // The kernel tells them as a tree of who is in whose way.  Of those that came within one tick of
  // its clock, that order is the better one.
  void sort_waiters() {
    std::stable_sort(info.waiters->begin(), info.waiters->end(),
                     [](const auto& a, const auto& b) { return a.waiting > b.waiting; });
  }

  const Place& place_;
  const std::vector<FlockLine>& locks_;
  std::vector<pid_t> suspects_;
  const bool last_;
  const Deadline now_ = Clock::now();  // the same for all, or those of one tick would change places
  std::vector<pid_t> known_;           // who locked the lock file for the holders of seats
  std::vector<FlockLine> at_seats_;    // who waits for seats
};

Result<LockInfo> look_at(const Place& place, std::string_view key,
                         std::optional<std::vector<FlockLine>> locks) {
  std::vector<pid_t> suspects;
  for (int looks = 1;; ++looks) {
    const auto file = open_lock_file(place, place.leaf, Missing::leave);
    if (!file) return file.error();
    if (!locks) locks = read_proc_locks();
    const bool last = looks == kLooks + kPatientLooks;
    Look seen(place, *locks, std::move(suspects), last);
    seen.info.key = key;
    if (file.value()) seen.read(*file.value());
    if (seen.error) return *seen.error;
    if (!seen.unsettled || last) return std::move(seen.info);
    if (looks >= kLooks) usleep(kPauseUs);
    suspects = std::move(seen.suspects);
    locks.reset();
  }
}

// Collects the keys whose names are in one folder and, for long names, below it.  False: it cannot
// be read.
bool collect_keys(int at, std::vector<std::string>& folders, std::string_view prefix,
                  std::vector<std::string>& keys) {
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
      read_all = collect_keys(here, folders, prefix, keys) && read_all;
      folders.pop_back();
    } else if (const auto key = key_of(folders, name); key && key->starts_with(prefix)) {
      keys.push_back(*key);
    }
  }
  return read_all;
}

}  // namespace

bool is_dlock(pid_t pid) { return is_dlock(owner_of_process(pid)); }

bool is_live(const LockFile& file, const Record& record, const std::vector<FlockLine>& locks) {
  if (record.given_up) return false;
  bool locked = false;
  for (const FlockLine& line : lines_of(locks, file.device, file.inode)) {
    if (line.waiting) continue;
    // Numbers of another namespace cannot be compared.
    if (record.pid_namespace != util::pid_namespace() || line.pid == record.lock_pid) return true;
    locked = true;
  }
  return !locked && !probe_is_granted(file.fd.get());
}

Result<LockInfo> look(const std::shared_ptr<const LockDir>& dir, std::string_view key) {
  const auto place = place_of(dir, key, Missing::leave);
  if (!place) return place.error();
  if (place.value()) return look_at(*place.value(), key, std::nullopt);
  LockInfo free{.key = std::string(key)};
  free.waiters.emplace();
  return free;
}

Result<std::vector<LockInfo>> look_at_all(const std::shared_ptr<const LockDir>& dir,
                                          std::string_view prefix) {
  std::vector<std::string> folders;
  std::vector<std::string> keys;
  if (!collect_keys(dir->fd(), folders, prefix, keys)) {
    return errno_error(dir->path(), "cannot list lock directory", errno);
  }
  std::sort(keys.begin(), keys.end());
  const auto locks = read_proc_locks();
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

}  // namespace dlock::file
