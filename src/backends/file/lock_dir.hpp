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

/// With whom a directory is shared, and the rights of the files that dlock creates there.
struct Sharing {
  bool shared = false;  // a named directory that its group or everybody may write to
  mode_t file = 0600;   // the mode of a file that is created there
  mode_t folder = 0700;
  gid_t group = 0;  // if it is shared
};

/// Which directories are accepted.
///   - only_ours: one of this user that no other user may write to.
///   - named: also one that others may write to, as its mode says.
///   - all: also one that all may write to and that is not sticky.  The directories above it are
///     not checked.  Each user that may write there can cause two holders at once.
enum class Trust { only_ours, named, all };

class LockDir {
 public:
  /// Opens `path`, or with an empty one the default directory, which it creates when missing.
  /// Errc::denied if other users than those with whom it is shared could cause two holders at once,
  /// also by putting another directory in its place.
  static Result<std::shared_ptr<const LockDir>> open(const std::string& path, Trust trust);

  /// Opens `path`, a directory of this user, for records.  It need not be writable, and there is no
  /// warning about locks on network file systems.
  static Result<std::shared_ptr<const LockDir>> open_for_records(const std::string& path);

  /// The same of the folder `name` in this directory.
  Result<std::shared_ptr<const LockDir>> folder_for_records(const std::string& name,
                                                            Trust trust) const;

  /// The checks of open() that the two functions above leave out.
  Result<void> check_for_locks() const;

  /// The directory that now has the path of this one.
  Result<std::shared_ptr<const LockDir>> open_again() const;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  /// Whether it is the default directory, by whatever path it was named.  False if it is shared:
  /// another user has another default directory.
  bool is_usual() const { return usual_; }
  const Sharing& sharing() const { return sharing_; }
  Trust trust() const { return trust_; }

  /// Ok while the path still leads to this directory.  Errc::lost says what has happened.
  /// Errc::unreachable: it is not known.
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
  std::string leaf;   // the name of the lock file in there
  std::string shown;  // the path of the lock file, for messages

  int fd() const { return folder ? folder.get() : dir->fd(); }
};

enum class Missing { create, leave };

/// None (without an error) if a folder of a long name is missing and Missing::leave is given.
Result<std::optional<Place>> place_of(std::shared_ptr<const LockDir> dir, std::string_view key,
                                      Missing missing);

/// The folder `name` in the folder `at`, with the path `shown`.  None if it is missing and
/// Missing::leave is given.  Errc::denied if LockDir::open() would refuse it.
Result<std::optional<Fd>> open_folder(int at, const std::string& name, const std::string& shown,
                                      const Sharing& sharing, Missing missing);

/// The kind of the network file system, as "NFS"; null if it is on none that is known.
const char* network_of(int fd);

enum class Kind { file, folder };

/// Creates `name` in the folder `at`, with the group and the mode that the users need who share the
/// directory, whatever the umask.  A file is opened for reading and writing; of a folder there is
/// no descriptor.  Fails, with errno set (EEXIST), if there is something of that name.
struct Created {
  bool done = false;
  Fd file;
};
Created create(int at, const std::string& name, Kind kind, const Sharing& sharing);

}  // namespace dlock::file
