// Files.   ~done/<key>~<period> for marks, ~ids/<name> for numbers (state_dir.hpp): DurableFile.
// Version. The text itself, compared while the file is locked.
// Clock.   Times are of the wall clock, since they outlive a boot.  If it is set forward, a mark
//          expires earlier by as much, and its job may run again; if it is set back, later.
// Users.   Those who share the locks share the records (Sharing).  A user may write a mark for a
//          job that was never done, which then is not run; the same user could hold the lock
//          without end.
#include "backends/file/file_records.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "backends/file/durable_file.hpp"
#include "backends/file/name.hpp"
#include "backends/file/state_dir.hpp"
#include "core/mark.hpp"
#include "util/host.hpp"
#include "util/log.hpp"
#include "util/random_id.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr std::size_t kSample = 16;
// For a process that is writing.
constexpr Millis kPatience{5'000};
// No encoded name has a ~.
const std::string kWorkers = "~workers";  // the record of numbers without a key
const std::string kTrial = "~trial";      // written to find out whether a mark can be
// A key of 255 bytes is 765 encoded: three folders.
constexpr std::size_t kMostDepth = 3;

std::int64_t now_ms() { return static_cast<std::int64_t>(util::utc_now_ms()); }

Deadline within_patience(Deadline deadline) {
  return std::min(deadline, after(Clock::now(), kPatience));
}

void add(std::string& list, const Error& error) {
  list += (list.empty() ? "" : "; ") + error.message;
}

// None: there is no file, and Missing::leave is given.
Result<std::optional<DurableFile>> file_of(const LockDir& locks, const RecordName& name,
                                           Missing missing) {
  using File = std::optional<DurableFile>;
  const bool is_mark = name.kind == RecordKind::mark;
  auto dir = is_mark ? open_mark_dir(locks, missing) : open_counter_dir(locks);
  if (!dir) return dir.error();
  if (!*dir) return File();
  if (!is_mark && name.key.empty()) {
    Place place{
        .dir = *dir, .folder = {}, .leaf = kWorkers, .shown = (*dir)->path() + '/' + kWorkers};
    return File(std::in_place, std::move(place), kWorkers);
  }
  auto place = place_of(*dir, name.key, missing);
  if (!place) return place.error();
  if (!*place) return File();
  std::string leaf = (*place)->leaf + (is_mark ? '~' + name.period : "");
  return File(std::in_place, std::move(**place), std::move(leaf));
}

// The marks below a folder; `folders`: those of long names that lead to it.  A mark that cannot be
// read does not hide the others: it is added to `unread`.
void collect(int at, const std::string& path, std::vector<std::string>& folders,
             std::vector<RecordName>& out, std::string& unread) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::openat(at, folders.empty() ? "." : folders.back().c_str(), flags));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd ? ::fdopendir(fd.get()) : nullptr,
                                                    ::closedir);
  if (!listing) return add(unread, errno_error(path, "cannot list", errno));
  const int here = fd.release();
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (is_folder_name(name) && folders.size() < kMostDepth) {
      folders.push_back(name);
      collect(here, path + '/' + name, folders, out, unread);
      folders.pop_back();
      continue;
    }
    const auto tilde = name.find('~');
    if (tilde == std::string::npos || !is_period(name.substr(tilde + 1))) continue;
    const auto key = key_of(folders, std::string_view(name).substr(0, tilde));
    if (key && !key->empty()) out.push_back({RecordKind::mark, *key, name.substr(tilde + 1)});
  }
}

class FileRecords final : public Records {
 public:
  explicit FileRecords(const std::shared_ptr<const LockDir>& locks) : locks_(locks) {}

  std::string shown(const RecordName& name) const override {
    const auto file = file_of(*locks_, name, Missing::leave);
    return file && file.value() ? util::printable(file.value()->path()) : locks_->path();
  }
  Result<RecordLook> read(const RecordName& name, Deadline deadline) override;
  Result<RecordLook> list(std::string_view prefix, Deadline deadline) override;
  Result<bool> write(const RecordName& name, const std::string& version, const std::string& text,
                     Deadline deadline) override;
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline deadline) override;
  Result<void> prepare(std::string_view key, Deadline deadline) override;
  Result<RecordLook> sample(std::string_view key, Deadline deadline) override;

 private:
  Result<std::vector<RecordName>> marks(std::string& unread) const;
  Result<bool> remove(const StoredRecord& seen, Deadline deadline);
  RecordLook read_each(const std::vector<RecordName>& names, Deadline deadline,
                       std::string& unread);

  const std::shared_ptr<const LockDir>& locks_;
  bool has_warned_ = false;
};

Result<RecordLook> FileRecords::read(const RecordName& name, Deadline deadline) {
  RecordLook out{.records = {}, .now = now_ms()};
  auto file = file_of(*locks_, name, Missing::leave);
  if (!file) return file.error();
  if (!*file) return out;
  auto text = (*file)->read(within_patience(deadline));
  if (!text) return text.error();
  if (*text) out.records.push_back({name, (*text)->text, (*text)->text, (*text)->written});
  return out;
}

// All of them, whatever their keys.
Result<std::vector<RecordName>> FileRecords::marks(std::string& unread) const {
  std::vector<RecordName> names;
  const auto dir = open_mark_dir(*locks_, Missing::leave);
  if (!dir) return dir.error();
  std::vector<std::string> folders;
  if (dir.value()) collect(dir.value()->fd(), dir.value()->path(), folders, names, unread);
  return names;
}

RecordLook FileRecords::read_each(const std::vector<RecordName>& names, Deadline deadline,
                                  std::string& unread) {
  deadline = within_patience(deadline);
  RecordLook out{.records = {}, .now = now_ms()};
  for (const RecordName& name : names) {
    auto look = read(name, deadline);
    if (!look) {
      add(unread, look.error());
    } else if (!look->records.empty()) {
      out.records.push_back(std::move(look->records.front()));
    }
  }
  return out;
}

Result<RecordLook> FileRecords::list(std::string_view prefix, Deadline deadline) {
  std::string unread;
  auto names = marks(unread);
  if (!names) return names.error();
  std::erase_if(*names, [&](const RecordName& name) { return !name.key.starts_with(prefix); });
  RecordLook look = read_each(*names, deadline, unread);
  if (!unread.empty()) util::log(util::Level::warning, "not listed: " + unread);
  return look;
}

// Deletes files without a text, which a killed process has left, or a user who may not delete the
// files of others.
Result<RecordLook> FileRecords::sample(std::string_view, Deadline deadline) {
  std::string unread;  // which is no concern of a run
  const auto names = marks(unread);
  if (!names) return names.error();
  std::minstd_rand random(util::random_seed());
  std::vector<RecordName> some;
  std::sample(names.value().begin(), names.value().end(), std::back_inserter(some), kSample,
              random);
  RecordLook look = read_each(some, deadline, unread);
  std::vector<StoredRecord> empty;
  for (const RecordName& name : some) {
    const bool has_text = std::any_of(look.records.begin(), look.records.end(),
                                      [&](const StoredRecord& it) { return it.name == name; });
    if (!has_text) empty.push_back({.name = name});
  }
  (void)remove(empty, deadline);
  return look;
}

Result<bool> FileRecords::write(const RecordName& name, const std::string& version,
                                const std::string& text, Deadline deadline) {
  auto file = file_of(*locks_, name, Missing::create);
  if (!file) return file.error();
  const auto locked = (*file)->lock(Missing::create, within_patience(deadline));
  if (!locked) return locked.error();
  const auto there = (*file)->read(deadline);
  if (!there) return there.error();
  if ((there.value() ? there.value()->text : "") != version) return false;
  if (version.empty() && name.kind == RecordKind::number) {
    const auto dir = open_counter_dir(*locks_);
    if (dir) warn_of_loss(*dir.value(), "its counters begin again");
  }
  if (auto ok = (*file)->write(text); !ok) return ok.error();
  return true;
}

// A record that is locked, or cannot be read, does not stop the deletion of the others.
Result<std::size_t> FileRecords::remove(std::span<const StoredRecord> seen, Deadline deadline) {
  std::size_t count = 0;
  std::optional<Error> error;
  for (const StoredRecord& record : seen) {
    const auto removed = remove(record, deadline);
    if (removed && removed.value()) ++count;
    if (!removed && !error) error = removed.error();
  }
  return error ? Result<std::size_t>(*error) : count;
}

Result<bool> FileRecords::remove(const StoredRecord& seen, Deadline deadline) {
  auto file = file_of(*locks_, seen.name, Missing::leave);
  if (!file) return file.error();
  if (!*file) return false;
  const auto locked = (*file)->lock(Missing::leave, within_patience(deadline));
  if (!locked) return locked.error();
  if (!locked.value()) return false;
  const auto there = (*file)->read(deadline);
  if (!there) return there.error();
  if ((there.value() ? there.value()->text : "") != seen.version) return false;
  if (auto ok = (*file)->remove(); !ok) return ok.error();
  return true;
}

// The disk may be full.  What a new mark needs is written to a file that has no name any more.
Result<void> FileRecords::prepare(std::string_view key, Deadline) {
  const auto dir = open_mark_dir(*locks_, Missing::create);
  if (!dir) return dir.error();
  if (!std::exchange(has_warned_, true)) {
    warn_of_loss(*dir.value(), "what is done is forgotten");
    warn_of_other_machines(*locks_, *dir.value());
  }
  auto place = place_of(dir.value(), key, Missing::create);
  if (!place) return place.error();
  Place& there = **place;
  there.shown.resize(there.shown.size() - there.leaf.size());
  there.shown += there.leaf = kTrial;
  const auto trial = open_lock_file(there, kTrial);
  if (!trial) return trial.error();
  ::unlinkat(there.fd(), kTrial.c_str(), 0);
  return DurableFile::try_to_write(trial.value(), there);
}

}  // namespace

std::unique_ptr<Records> make_records(const std::shared_ptr<const LockDir>& locks) {
  return std::make_unique<FileRecords>(locks);
}

Result<void> put_record(const LockDir& locks, const RecordName& name, const std::string& text,
                        Deadline deadline) {
  auto file = file_of(locks, name, Missing::create);
  if (!file) return file.error();
  const auto locked = (*file)->lock(Missing::create, within_patience(deadline));
  return locked ? (*file)->write(text) : locked.error();
}

}  // namespace dlock::file
