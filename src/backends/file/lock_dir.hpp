// The directory that the locks are in, opened once and checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// "file:///dir/key: text of errno", as the Errc that errno deserves.
Error errno_error(std::string_view path, std::string_view doing, int error);

class LockDir {
 public:
  /// Opens `path`, or with an empty one the default directory, which it creates when missing.
  static Result<std::shared_ptr<const LockDir>> open(const std::string& path);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  /// Ok while the path still leads to this directory; else Errc::lost saying what happened, or
  /// Errc::unreachable where that cannot be told.
  Result<void> still_there() const;

 private:
  Fd fd_;
  std::string path_;
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

}  // namespace dlock::file
