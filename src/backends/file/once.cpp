// Files.  A mark is a file that is never changed.  It is in the folder of its key, below `~done`,
// and is named FENCE~EXPIRY~PERIOD, the expiry in milliseconds since 1970.  It is written and made
// durable as a draft, under a name that does not count, and counts from the moment at which it is
// renamed.
//
// All or nothing.  The holder writes the draft, checks that the lock is still its own, renames,
// makes the new name durable, and then releases.  So the next holder finds the mark, also after a
// power failure.  If the holder is killed before it has renamed, there is no mark, and the kernel
// frees the lock; if later, there is a mark, and the kernel frees the lock.  Between the check and
// the renaming the lock can be lost only if somebody deletes its file at that moment; then the mark
// is of a job that was done under the lock all the same.
//
// Several marks of one name.  Each counts until it expires, so no mark can hide another one.
// complete() removes the earlier ones when its own is durable.  A name is never used again, so a
// process that removes an expired mark, or forgets one, and was stopped before that, does not
// remove a later mark.
//
// Reading.  The names in a folder are not read at one instant.  A reader may miss mark 2 because
// it comes after the reader has passed its place, and mark 1 because it goes before the reader has
// reached it, or opens it.  But mark 1 goes after mark 2 has come.  So a second look finds mark 2,
// and a look that has seen a mark which was gone when it was opened does not count.
//
// Clock.  Times are of the wall clock, since they outlive a boot.  If it is set forward, a mark
// expires earlier by as much, and its job may run again; if it is set back, later.  A mark that was
// made while the clock was years behind, as on a machine without a battery, has expired when the
// clock is right again; one that was made while it was years ahead counts for years, and is seen to
// do so (Mark::left).
//
// Others.  They share the directory as they share the locks (Sharing).  In a sticky directory only
// the owner of a file and that of its folder may remove it: what others cannot remove stays until
// its owner comes by.  A user may write a mark for a job that was never done, which then is not
// run; as well it could hold the lock for ever.
#include "backends/file/once.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "backends/file/name.hpp"
#include "backends/file/state_dir.hpp"
#include "util/exchange.hpp"
#include "util/host.hpp"
#include "util/jitter.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

using util::printable;

// No name of a mark begins so.
constexpr char kDraft = '~';
// A draft is renamed within milliseconds.  An older one was left by a process that was killed; if
// that was stopped instead, it cannot rename it any more, and writes another one.
constexpr Millis kDraftLife{3'600'000};
// Keys that a run looks at for marks that have expired.  With dated keys each run adds one folder,
// so on average there are a quarter more folders than are in use.
constexpr std::size_t kMostSwept = 5;
// An empty folder may be removed before a draft is made in it, and a mark before it is opened; not
// so often.
constexpr int kMostTries = 1'000;
// A key of 255 bytes is 765 encoded: three folders.
constexpr std::size_t kMostDepth = 3;

std::int64_t now_ms() { return static_cast<std::int64_t>(util::utc_now_ms()); }

bool is_period(std::string_view text) {
  return text.size() <= kMaxPeriodLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  c == '-';
         });
}

std::optional<MarkFile> parse_mark_name(std::string_view name) {
  constexpr auto kNone = std::string_view::npos;
  const auto first = name.find('~');
  const auto second = first == kNone ? kNone : name.find('~', first + 1);
  if (second == kNone) return std::nullopt;
  const auto fence = util::parse_int(name.substr(0, first), 0, INT64_MAX);
  const auto expiry = util::parse_int(name.substr(first + 1, second - first - 1), 0, INT64_MAX);
  if (!fence || !expiry) return std::nullopt;
  MarkFile file{*fence, *expiry, std::string(name.substr(second + 1))};
  if (!is_period(file.period) || file.name() != name) return std::nullopt;
  return file;
}

Result<std::vector<std::string>> entries_of(int folder, const std::string& path) {
  std::vector<std::string> names;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0 && errno == ENOENT) return names;  // it was removed
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy >= 0 ? ::fdopendir(copy) : nullptr,
                                                    ::closedir);
  if (!listing) return errno_error(path, "cannot read", errno);
  errno = 0;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return errno_error(path, "cannot read", errno);
  return names;
}

// The marks in a folder, whether they have expired or not, the newest first.
Result<std::vector<MarkFile>> marks_in(const MarkFolder& folder) {
  const auto names = entries_of(folder.fd.get(), folder.path);
  if (!names) return names.error();
  std::vector<MarkFile> out;
  for (const std::string& name : names.value()) {
    if (auto file = parse_mark_name(name)) out.push_back(std::move(*file));
  }
  std::sort(out.begin(), out.end(), [](const MarkFile& a, const MarkFile& b) {
    return std::pair(a.fence, a.expiry) > std::pair(b.fence, b.expiry);
  });
  return out;
}

// None: no mark of this key was made, or all are gone.
Result<std::optional<MarkFolder>> open_marks(const std::shared_ptr<const LockDir>& dir,
                                             std::string_view key) {
  if (!dir) return std::optional<MarkFolder>();
  auto place = place_of(dir, key, Missing::leave);
  if (!place) return place.error();
  if (!*place) return std::optional<MarkFolder>();
  const Place& at = **place;
  auto fd = open_folder(at.fd(), at.leaf, at.shown, dir->sharing(), Missing::leave);
  if (!fd) return fd.error();
  if (!*fd) return std::optional<MarkFolder>();
  return std::optional(MarkFolder{std::move(**fd), at.shown});
}

Result<std::optional<MarkFolder>> open_marks(const LockDir& locks, std::string_view key) {
  const auto dir = open_mark_dir(locks, Missing::leave);
  if (!dir) return dir.error();
  return open_marks(dir.value(), key);
}

// None: it is gone.
Result<std::optional<Mark>> read_mark(const MarkFolder& folder, const MarkFile& file,
                                      std::string_view key, std::int64_t now) {
  const std::string path = folder.path + '/' + file.name();
  const Fd fd(::openat(folder.fd.get(), file.name().c_str(),
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd && errno == ENOENT) return std::optional<Mark>();
  if (!fd && errno != ELOOP) return errno_error(path, "cannot read", errno);
  std::string text(kLongestMark + 1, '\0');
  struct stat st {};
  const bool is_plain =
      fd && ::fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1;
  const ssize_t got = is_plain ? ::pread(fd.get(), text.data(), text.size(), 0) : 0;
  if (got < 0) return errno_error(path, "cannot read", errno);
  const auto record = parse_mark(std::string_view(text).substr(0, static_cast<std::size_t>(got)));
  if (!record) return Error{Errc::conflict, printable(path) + " is no mark of dlock: remove it"};
  Mark mark{.name = {std::string(key), file.period},
            .owner = record->owner,
            .fence = record->fence,
            .done_at = record->done_at};
  mark.left = Millis{file.expiry - now};
  mark.age = std::max(Millis{0}, record->remember - mark.left);
  return std::optional(std::move(mark));
}

// What a look at the marks of one name has found.
struct Seen {
  std::optional<Mark> newest;  // of those that can be read
  std::optional<Error> unreadable;
  bool gone = false;  // there was one, which somebody has removed since
};

Seen read_newest(const MarkFolder& folder, const std::vector<MarkFile>& files,
                 const MarkName& name) {
  Seen seen;
  const std::int64_t now = now_ms();
  for (const MarkFile& file : files) {
    if (file.period != name.period || file.expiry <= now) continue;
    auto mark = read_mark(folder, file, name.key, now);
    if (!mark) {
      if (!seen.unreadable) seen.unreadable = mark.error();
    } else if (*mark) {
      seen.newest = std::move(*mark);
      return seen;
    } else {
      seen.gone = true;
    }
  }
  return seen;
}

// Not all file systems can: EINVAL.  EROFS: the file system has failed, and the names that are seen
// may not be on the disk.  One that is mounted read-only gives no error.
Result<void> sync_folder(const MarkFolder& folder) {
  if (::fsync(folder.fd.get()) == 0 || errno == EINVAL) return {};
  return errno_error(folder.path, "cannot make durable", errno);
}

Error cannot_remove(const MarkFolder& folder, const std::string& name, int error) {
  const std::string path = folder.path + '/' + name;
  struct stat st {};
  if (error != EPERM || ::fstatat(folder.fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno_error(path, "cannot remove", error);
  }
  return {Errc::denied, "cannot remove " + printable(path) + ": it belongs to user " +
                            util::user_name(st.st_uid) +
                            "; in this directory (sticky) only that user and root may remove it"};
}

// --- making

struct Draft {
  MarkFolder folder;
  std::string name;
  Fd file;
};

// Nobody changes a mark, but others may read it.
Result<Draft> make_draft(const LockDir& locks, std::string_view key) {
  const auto dir = open_mark_dir(locks, Missing::create);
  if (!dir) return dir.error();
  const auto place = place_of(dir.value(), key, Missing::create);
  if (!place) return place.error();
  const Place& at = *place.value();
  Sharing sharing = dir.value()->sharing();
  sharing.file &= 0444;
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (!create(at.fd(), at.leaf, Kind::folder, sharing).done && errno != EEXIST) {
      return errno_error(at.shown, "cannot create directory", errno);
    }
    auto folder = open_folder(at.fd(), at.leaf, at.shown, sharing, Missing::leave);
    if (!folder) return folder.error();
    if (!*folder) continue;
    std::string name = kDraft + util::random_id();
    Fd file = std::move(create((*folder)->get(), name, Kind::file, sharing).file);
    if (file) return Draft{{std::move(**folder), at.shown}, std::move(name), std::move(file)};
    if (errno != ENOENT) return errno_error(at.shown + '/' + name, "cannot create", errno);
  }
  return errno_error(at.shown, "cannot create a file in", ENOENT);
}

// --- sweeping

bool is_old_draft(int folder, const std::string& name, std::int64_t now) {
  struct stat st {};
  if (name[0] != kDraft) return false;
  if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return std::int64_t{st.st_mtim.tv_sec} * 1'000 < now - kDraftLife.count();
}

void sweep_folder(int folder) {
  const auto names = entries_of(folder, "");
  if (!names) return;
  const std::int64_t now = now_ms();
  for (const std::string& name : names.value()) {
    const auto mark = parse_mark_name(name);
    const bool is_over = mark ? mark->expiry <= now : is_old_draft(folder, name, now);
    if (is_over) ::unlinkat(folder, name.c_str(), 0);
  }
}

std::vector<std::string> some_of(std::vector<std::string> names) {
  const std::size_t count = std::min(names.size(), kMostSwept);
  for (std::size_t i = 0; i < count; ++i) {
    const Millis last{static_cast<Millis::rep>(names.size() - 1)};
    const Millis chosen = util::jitter(Millis{static_cast<Millis::rep>(i)}, last);
    std::swap(names[i], names[static_cast<std::size_t>(chosen.count())]);
  }
  names.resize(count);
  return names;
}

Fd open_entry(int at, const std::string& name) {
  return Fd(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Some keys in the folder `at`, at random so that each has its turn: marks that have expired, and
// folders in which nothing is left.  A folder that holds the rest of long names stays, since a
// process that makes a mark in it does not expect it to go.
void sweep_some(int at, std::size_t depth) {
  const auto names = entries_of(at, "");
  if (!names) return;
  for (const std::string& name : some_of(names.value())) {
    const Fd folder = open_entry(at, name);
    if (!folder) continue;
    if (is_folder_name(name)) {
      if (depth < kMostDepth) sweep_some(folder.get(), depth + 1);
      continue;
    }
    sweep_folder(folder.get());
    ::unlinkat(at, name.c_str(), AT_REMOVEDIR);  // fails unless it is empty
  }
}

// --- listing

void add_to(std::string& unread, const Error& error) {
  unread += (unread.empty() ? "" : "; ") + error.message;
}

// The keys that have a folder in `at` and, for long names, below it.  Folders below it that cannot
// be read are described in `unread`: in a sticky directory anybody can make one.
Result<void> collect_marked(int at, const std::string& path, std::vector<std::string>& folders,
                            std::string_view prefix, std::vector<std::string>& keys,
                            std::string& unread) {
  const auto names = entries_of(at, path);
  if (!names) return names.error();
  for (const std::string& name : names.value()) {
    if (!is_folder_name(name)) {
      auto key = key_of(folders, name);
      if (key && key->starts_with(prefix)) keys.push_back(std::move(*key));
      continue;
    }
    if (folders.size() == kMostDepth) continue;
    const std::string below = path + '/' + name;
    const Fd folder = open_entry(at, name);
    if (!folder) {
      if (errno != ENOENT) add_to(unread, errno_error(below, "cannot read", errno));
      continue;
    }
    folders.push_back(name);
    const auto read = collect_marked(folder.get(), below, folders, prefix, keys, unread);
    if (!read) add_to(unread, read.error());
    folders.pop_back();
  }
  return {};
}

// Those that cannot be read are described in `unread`.
void add_marks_of(const std::shared_ptr<const LockDir>& dir, const std::string& key,
                  std::vector<Mark>& marks, std::string& unread) {
  const auto folder = open_marks(dir, key);
  if (!folder) return add_to(unread, folder.error());
  if (!folder.value()) return;
  const auto files = marks_in(*folder.value());
  if (!files) return add_to(unread, files.error());
  std::set<std::string> periods;
  for (const MarkFile& file : files.value()) periods.insert(file.period);
  for (const std::string& period : periods) {
    Seen seen = read_newest(*folder.value(), files.value(), {key, period});
    if (seen.newest) {
      marks.push_back(std::move(*seen.newest));
    } else if (seen.unreadable) {
      add_to(unread, *seen.unreadable);
    }
  }
}

}  // namespace

std::string MarkFile::name() const {
  return std::to_string(fence) + '~' + std::to_string(expiry) + '~' + period;
}

Result<std::unique_ptr<NewMark>> NewMark::write(const LockDir& locks, std::string_view key,
                                                const Completion& completion, const Owner& owner,
                                                std::optional<std::uint64_t> fence) {
  auto draft = make_draft(locks, key);
  if (!draft) return draft.error();
  const std::string path = draft->folder.path + '/' + draft->name;
  std::unique_ptr<NewMark> mark(new NewMark(std::move(draft->folder), std::move(draft->name)));
  mark->file_.fence = static_cast<std::int64_t>(fence.value_or(0));
  const std::int64_t now = now_ms();
  mark->file_.expiry = now + std::min<std::int64_t>(completion.remember.count(), INT64_MAX - now);
  mark->file_.period = completion.period;
  if (!util::write_all(draft->file.get(), format_mark(owner, fence, completion.remember))) {
    return errno_error(path, "cannot write", errno);
  }
  if (::fsync(draft->file.get()) != 0) return errno_error(path, "cannot make durable", errno);
  return mark;
}

NewMark::~NewMark() {
  if (!draft_.empty()) ::unlinkat(folder_.fd.get(), draft_.c_str(), 0);
}

Result<void> NewMark::publish() {
  const int at = folder_.fd.get();
  if (::renameat(at, draft_.c_str(), at, file_.name().c_str()) != 0) {
    return errno_error(folder_.path + '/' + draft_, "cannot rename", errno);
  }
  draft_.clear();
  return {};
}

Result<void> NewMark::make_durable() const {
  if (auto ok = sync_folder(folder_); !ok) return ok;
  return sync_with_parents(folder_.path.substr(0, folder_.path.rfind('/')));
}

Result<void> NewMark::settle() {
  const Deadline begun = Clock::now();
  auto durable = make_durable();
  if (util::exchanges_shown()) {
    util::log_exchange("file " + folder_.path + '/' + file_.name(), "remember",
                       durable ? "durable" : durable.error().message, begun);
  }
  if (!durable) return durable;
  const auto files = marks_in(folder_);
  if (!files) return {};
  for (const MarkFile& file : files.value()) {
    const bool is_earlier = file.period == file_.period && file.fence <= file_.fence;
    if (!is_earlier || file.name() == file_.name()) continue;
    ::unlinkat(folder_.fd.get(), file.name().c_str(), 0);
  }
  return {};
}

// What was seen here must not be gone after a power failure, and its maker may not have come so
// far.
Result<std::optional<Mark>> find_mark(const LockDir& locks, const MarkName& name) {
  int looks = 0;  // that have seen nothing
  for (int tries = 0; looks < 2; ++tries) {
    const auto folder = open_marks(locks, name.key);
    if (!folder) return folder.error();
    if (!folder.value()) break;
    const auto files = marks_in(*folder.value());
    if (!files) return files.error();
    Seen seen = read_newest(*folder.value(), files.value(), name);
    if (seen.newest) {
      if (auto ok = sync_folder(*folder.value()); !ok) return ok.error();
      return std::move(seen.newest);
    }
    if (seen.unreadable) return *seen.unreadable;
    if (!seen.gone) ++looks;
    if (tries == kMostTries) return errno_error(folder.value()->path, "cannot read", EBUSY);
  }
  return std::optional<Mark>();
}

// It sweeps before it tries to write: the disk may be full of marks that have expired.
Result<void> prepare_marks(const LockDir& locks, std::string_view key, bool may_warn) {
  const auto dir = open_mark_dir(locks, Missing::create);
  if (!dir) return dir.error();
  if (may_warn) {
    warn_of_loss(*dir.value(), "what is done is forgotten");
    warn_of_other_machines(locks, *dir.value());
  }
  const auto folder = open_marks(dir.value(), key);
  if (!folder) return folder.error();
  if (folder.value()) sweep_folder(folder.value()->fd.get());
  sweep_some(dir.value()->fd(), 0);
  const auto trial = NewMark::write(locks, key, {.period = "", .remember = Millis{1}}, {}, {});
  if (!trial) return trial.error();
  return sync_with_parents(trial.value()->folder().path);
}

Result<std::vector<Mark>> list_marks(const LockDir& locks, std::string_view prefix) {
  std::vector<Mark> marks;
  const auto dir = open_mark_dir(locks, Missing::leave);
  if (!dir) return dir.error();
  if (!dir.value()) return marks;
  std::vector<std::string> folders;
  std::vector<std::string> keys;
  std::string unread;
  const LockDir& top = *dir.value();
  const auto read = collect_marked(top.fd(), top.path(), folders, prefix, keys, unread);
  if (!read) return read.error();
  for (const std::string& key : keys) add_marks_of(dir.value(), key, marks, unread);
  if (!unread.empty()) util::log(util::Level::warning, "not listed: " + unread);
  std::sort(marks.begin(), marks.end(),
            [](const Mark& a, const Mark& b) { return a.name < b.name; });
  return marks;
}

Result<bool> forget_mark(const LockDir& locks, const MarkName& name) {
  const auto folder = open_marks(locks, name.key);
  if (!folder) return folder.error();
  if (!folder.value()) return false;
  const MarkFolder& at = *folder.value();
  const auto files = marks_in(at);
  if (!files) return files.error();
  const std::int64_t now = now_ms();
  bool was_there = false;
  for (const MarkFile& file : files.value()) {
    if (file.period != name.period) continue;
    const bool counts = file.expiry > now;
    if (::unlinkat(at.fd.get(), file.name().c_str(), 0) == 0) {
      was_there = was_there || counts;
    } else if (counts && errno != ENOENT) {
      return cannot_remove(at, file.name(), errno);
    }
  }
  if (!was_there) return false;
  if (auto ok = sync_folder(at); !ok) return ok.error();
  return true;
}

}  // namespace dlock::file
