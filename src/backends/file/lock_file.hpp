// One file that is flocked: opened safely, and known by its inode.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "backends/file/lock_dir.hpp"
#include "backends/file/record.hpp"
#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::file {

struct LockFile {
  std::string name;  // in the folder of its Place
  Fd fd;
  dev_t device = 0;
  ino_t inode = 0;
  mode_t mode = 0;
  pid_t locked_by = 0;  // the process that called flock(2), as /proc/locks has it; 0: not locked
};

/// As it is shown, also for one of the other files of the key.
std::string path_of(const Place& place, const std::string& name);

/// Never follows a link, never blocks, and refuses (Errc::denied) what is not a plain file of ours
/// or root's with one name.  With Missing::leave, none if there is no such file.
Result<std::optional<LockFile>> open_lock_file(const Place& place, const std::string& name,
                                               Missing missing);
/// Creates it when missing.
Result<LockFile> open_lock_file(const Place& place, const std::string& name);

/// flock(2) without waiting; false if somebody is in the way.
Result<bool> try_flock(LockFile& file, const Place& place, int operation);

/// What a name leads to, compared with an open file.
enum class Identity {
  same,
  marked,  // the same, and force_release() is about to replace it, or died while it was
  other,   // another file, or none
  unknown  // errno tells why
};
Identity identity_of(const LockFile& file, const Place& place);

/// The mark of Identity::marked.
bool set_mark(const LockFile& file, bool on);

/// What a lock file holds.
struct Content {
  std::optional<Header> header;
  std::optional<Record> record;
  bool foreign = false;  // not empty and not ours: to be left alone
};
Content read_lock_file(int fd);
/// A seat has no header.
std::optional<Record> read_seat(int fd);

/// What force_release() has left for the holders of this place, the newest first; "" if nothing.
std::string read_notes(const Place& place);

/// Writes at `offset`; Errc::unreachable naming the file when the disk does not take it.
Result<void> write_at(const LockFile& file, const Place& place, std::string_view bytes,
                      off_t offset);

/// Puts a new file with this content in the place of `name`, all at once, and on the disk.  Only
/// with the latch held.
Result<void> replace_file(const Place& place, const std::string& name, std::string_view content);

}  // namespace dlock::file
