// The directory that the locks are in, opened once and checked; and what is created in it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file/ancestors.hpp"
#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// The directory that is used if none is named.
std::string default_path();

/// "file:///dir/key: text of errno", as the Errc that errno deserves.
Error errno_error(std::string_view path, std::string_view doing, int error);

/// That flock(2) has failed, but not because somebody else holds the lock.
Error flock_error(std::string_view path, int error);

/// Whose files we work with, and who may use those that we create.
struct Sharing {
  bool shared = false;  // a named directory that its group or everybody may write to
  mode_t file = 0600;   // of what we create
  mode_t folder = 0700;
  gid_t group = 0;  // where it is shared
};

/// Whose directory it may be: ours, that nobody else may write to; or also one that was named, and
/// that others may use as its mode says; or one that all may write to, sticky or not, and nothing
/// is asked about those above it: whoever may write there can let two holders in.
enum class Trust { only_ours, named, all };

class LockDir {
 public:
  /// Opens `path`, or with an empty one the default directory, which it creates when missing.
  /// Errc::denied for one in which people whom nobody has asked in could let two holders in, also
  /// by putting another directory in its place.
  static Result<std::shared_ptr<const LockDir>> open(const std::string& path, Trust trust);

  /// Opens `path`, a directory of ours, for what is no lock: it need not be writable, and nothing
  /// is said of locks on network file systems.
  static Result<std::shared_ptr<const LockDir>> open_for_records(const std::string& path);

  /// The same of the folder `name` in this directory.
  Result<std::shared_ptr<const LockDir>> folder_for_records(const std::string& name,
                                                            Trust trust) const;

  /// What open() asks for and the two above do not.
  Result<void> check_for_locks() const;

  /// What the same path leads to by now.
  Result<std::shared_ptr<const LockDir>> open_again() const;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  /// Whether it is the one that is used if none is named, by whatever path it was named.  Not if it
  /// is shared: each of those who share it uses another one then.
  bool is_usual() const { return usual_; }
  const Sharing& sharing() const { return sharing_; }
  Trust trust() const { return trust_; }

  /// Ok while the path still leads to this directory; else Errc::lost saying what happened, or
  /// Errc::unreachable where that cannot be told.
  Result<void> still_there() const;

 private:
  static Result<std::shared_ptr<LockDir>> open_checked(const std::string& path, Trust trust);
  static Result<std::shared_ptr<LockDir>> checked(Fd fd, const std::string& path, Trust trust,
                                                  const std::vector<Ancestor>& ancestors);

  Fd fd_;
  std::string path_;
  bool by_default_ = false;
  bool usual_ = false;
  Sharing sharing_;
  Trust trust_ = Trust::only_ours;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// The directory entry of a key: where its lock file and the auxiliary files beside it are.
struct Place {
  std::shared_ptr<const LockDir> dir;
  Fd folder;          // of a long name; else none
  std::string leaf;   // the lock file's name in there
  std::string shown;  // its whole path, for messages

  int fd() const { return folder ? folder.get() : dir->fd(); }
};

enum class Missing { create, leave };

/// None (without an error) if a folder of a long name is missing, and is to be left so.
Result<std::optional<Place>> place_of(std::shared_ptr<const LockDir> dir, std::string_view key,
                                      Missing missing);

/// The folder `name` in the folder `at`, which is created when missing; none if it is missing and
/// to be left so.  `shown`: its path.  Errc::denied for one that is not as safe as LockDir::open()
/// wants it.
Result<std::optional<Fd>> open_folder(int at, const std::string& name, const std::string& shown,
                                      const Sharing& sharing, Missing missing);

/// The kind of network file system that it is on, as "NFS"; null: on none that is known.
const char* network_of(int fd);

/// What can be created in a lock directory.
enum class Kind { file, folder };

/// Creates `name` in the folder `at`, with the group and the mode that others need who share the
/// directory, whatever the umask.  A file is opened for reading and writing; of a folder there is
/// no descriptor.  Fails, with errno set (EEXIST), if there is something of that name; also if
/// somebody else's is there that we might not open.
struct Created {
  bool done = false;
  Fd file;
};
Created create(int at, const std::string& name, Kind kind, const Sharing& sharing);

}  // namespace dlock::file
