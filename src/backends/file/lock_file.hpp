// One file that is flocked: opened safely, and known by its inode.
#pragma once

#include <sys/stat.h>

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
  pid_t locked_by = 0;  // the process that called flock(2), as /proc/locks has it; 0: not locked
};

/// As it is shown, also for one of the other files of the key.
std::string path_of(const Place& place, const std::string& name);

/// Ok for a file that we may work with; Errc::denied if it is no plain file, has several names, or
/// belongs to a user with whom nothing is shared (Sharing).
Result<void> check_file(const Place& place, const std::string& name, const struct stat& st);

/// Never follows a link, never blocks, and refuses what check_file() refuses.  With Missing::leave,
/// none if there is no such file.
Result<std::optional<LockFile>> open_lock_file(const Place& place, const std::string& name,
                                               Missing missing);
/// Creates it when missing.
Result<LockFile> open_lock_file(const Place& place, const std::string& name);

/// flock(2) without waiting; false if another process has a lock that excludes it.
Result<bool> try_flock(LockFile& file, const Place& place, int operation);

/// Unlocks at once, also if a process that was just forked still has a copy; and closes.
void unlock(LockFile& file);

/// Whether the path of a file still leads to it, so that others lock the same file.  Errc::lost if
/// the directory was replaced, or the folder of a long name may have been.  Errc::unreachable: it
/// is not known.
Result<bool> is_in_place(const LockFile& file, const Place& place);
/// Errc::lost: what is_in_place() has found.
Error not_in_place(const LockFile& file, const Place& place);

/// What a lock file holds.
struct Content {
  std::optional<Header> header;
  bool foreign = false;  // not empty and not ours: to be left alone
};
Content read_lock_file(int fd);

/// Writes the fence of the next grant into a lock file that is locked, and returns it.  None if the
/// file is not ours to write to.
Result<std::optional<std::uint64_t>> write_fence(const LockFile& file, const Place& place,
                                                 Claim claim);

/// The content from the start on, as much of it as was ever written by us.
std::string read_some(int fd);

/// Writes at `offset`; Errc::unreachable naming the file when the disk does not take it.
Result<void> write_at(const LockFile& file, const Place& place, std::string_view bytes,
                      off_t offset);

}  // namespace dlock::file
