// The kernel does not take a lock away, but nobody needs the inode: a new file in the place of the
// locked one is free, whoever waits for the old one goes over to it, and its holder sees that its
// file is not in place any more.  The header goes along, so that the fence goes on.
//
// No newer grant is broken: see "Force" in acquire.cpp for exclusive ones; shared ones and slots
// are granted under the latch, which is ours here.
//
// Shared holders are all on one lock file.  To replace that would break the others too, so only the
// seat is replaced, the holder is told, and we wait until it has let go.
#include "backends/file/force_release.hpp"

#include <sys/file.h>

#include <cerrno>

#include "backends/file/acquire.hpp"
#include "backends/file/flock_wait.hpp"
#include "backends/file/inspect.hpp"
#include "backends/file/name.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

constexpr std::size_t kMostNotes = 16 * 1024;

// Takes the mark off again, on whatever way out.
class Mark {
 public:
  explicit Mark(const LockFile& file) : file_(file), set_(set_mark(file, true)) {}
  ~Mark() {
    if (set_) set_mark(file_, false);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  bool set() const { return set_; }

 private:
  const LockFile& file_;
  bool set_;
};

struct Seat {
  LockFile file;
  Record record;
};

bool is_of(const std::optional<Record>& record, std::string_view owner_id) {
  return record && record->owner.id == owner_id;
}

Result<std::optional<Seat>> find_seat(const Place& place, std::string_view owner_id) {
  const auto locks = read_proc_locks();
  for (unsigned number = 1;; ++number) {
    auto file = open_lock_file(place, seat_name(place.leaf, number), Missing::leave);
    if (!file) return file.error();
    if (!*file) return std::optional<Seat>();
    auto record = read_seat((*file)->fd.get());
    if (!is_of(record, owner_id)) continue;
    if (!is_live(**file, *record, locks)) return std::optional<Seat>();
    return std::optional(Seat{std::move(**file), std::move(*record)});
  }
}

// True if all seats but one are free, and no other program shares the lock file.  With the latch:
// no seat is taken meanwhile but by a slots waiter, and that must take the latch before it holds.
// `content` was read after the mark was set: had the seat's holder just died, and an exclusive
// request been granted since, its header would be there.
Result<bool> is_alone(const Place& place, const LockFile& main, const Content& content,
                      const Seat& seat) {
  if (!content.header || content.header->mode != seat.record.mode) return false;
  for (unsigned number = 1;; ++number) {
    auto file = open_lock_file(place, seat_name(place.leaf, number), Missing::leave);
    if (!file) return file.error();
    if (!*file) break;
    if ((*file)->inode == seat.file.inode) continue;
    auto is_free = try_flock(**file, place, LOCK_EX);
    if (!is_free) return is_free.error();
    if (!*is_free) return false;
  }
  for (const FlockLine& line : lines_of(read_proc_locks(), main.device, main.inode)) {
    // A dlock that has no seat holds nothing yet, and will see that the file was replaced.
    if (line.waiting || line.pid == seat.record.main_pid) continue;
    if (line.exclusive || !is_dlock(line.pid)) return false;
  }
  return true;
}

Result<void> replace_main(const Place& place, const Content& content) {
  return replace_file(place, place.leaf, format_header(*content.header));
}

}  // namespace

Result<bool> force_release(const std::shared_ptr<const LockDir>& dir, std::string_view key,
                           std::string_view owner_id, std::string_view why, Deadline deadline) {
  const auto maybe = place_of(dir, key, Missing::leave);
  if (!maybe) return maybe.error();
  if (!maybe.value()) return false;
  const Place& place = *maybe.value();
  if (const auto exists = open_lock_file(place, place.leaf, Missing::leave);
      !exists || !exists.value()) {
    if (!exists) return exists.error();
    return false;
  }
  auto latch = take_latch(place, getpid(), deadline, Cancel());
  if (!latch) return latch.error();
  const auto opened = open_lock_file(place, place.leaf, Missing::leave);
  if (!opened) return opened.error();
  if (!opened.value()) return false;
  const LockFile& main = *opened.value();
  const Mark mark(main);
  if (!mark.set()) return errno_error(place.shown, "cannot mark lock file", errno);

  const Content content = read_lock_file(main.fd.get());
  // Who was broken a moment ago may not have read why.  Older ones go when there are too many.
  const std::string note =
      (format_note({std::string(owner_id), std::string(why)}) + read_notes(place))
          .substr(0, kMostNotes);
  if (is_of(content.record, owner_id)) {
    if (!is_live(main, *content.record, read_proc_locks())) return false;
    if (auto ok = replace_file(place, note_name(place.leaf), note); !ok) return ok.error();
    if (auto ok = replace_main(place, content); !ok) return ok.error();
    return true;
  }

  auto seat = find_seat(place, owner_id);
  if (!seat) return seat.error();
  if (!*seat) return false;
  LockFile& file = (*seat)->file;
  const Record& record = (*seat)->record;
  auto alone = is_alone(place, main, content, **seat);
  if (!alone) return alone.error();
  if (auto ok = replace_file(place, note_name(place.leaf), note); !ok) return ok.error();
  if (auto ok = replace_file(place, file.name, ""); !ok) return ok.error();
  if (*alone) {
    if (auto ok = replace_main(place, content); !ok) return ok.error();
  }
  if (*alone || record.mode == Mode::slots) return true;

  latch->fd.reset();
  auto end = wait_flock(file, LOCK_SH, getpid(), deadline, Cancel());
  if (!end) return end.error();
  if (*end == FlockWait::End::granted) return true;
  return Error{Errc::unreachable, util::in_quotes(key) +
                                      " is shared, and one of its holders, pid " +
                                      std::to_string(record.owner.pid) +
                                      ", was told to let go but does not answer: is it stopped?"};
}

}  // namespace dlock::file
