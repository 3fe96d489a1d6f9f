// A small text on a disk that is replaced in one step, and never goes back: neither when a process
// is killed, nor when the power fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"

namespace dlock::file {

struct DurableText {
  std::string text;          // not "": that is no text
  std::int64_t written = 0;  // in ms since 1970
};

class DurableFile {
 public:
  /// The file `name` in the folder of `place`, whose names begin with place.leaf.
  DurableFile(Place place, std::string name) : place_(std::move(place)), name_(std::move(name)) {}
  DurableFile(DurableFile&&) = default;
  DurableFile& operator=(DurableFile&&) = delete;
  /// Gives up the lock.
  ~DurableFile();

  /// Waits for the process that has the lock, if its text is not durable yet.  None: there is no
  /// text.  Errc::conflict: something else is in the file.
  Result<std::optional<DurableText>> read(Deadline deadline);

  /// Locks it for what follows, also against other objects of this process.  False if it is missing
  /// and to be left so.  Errc::unreachable if the process that has the lock does not go on
  /// (stopped?) until `deadline`.
  Result<bool> lock(Missing missing, Deadline deadline);

  /// The text is on the disk when this returns.  If it fails, either text may be there.
  Result<void> write(std::string_view text);

  /// There is no text when this returns, and no file if this user may delete it.
  Result<void> remove();

  /// Writes as much to `file` as a new one needs for a text of a usual length.
  static Result<void> try_to_write(const LockFile& file, const Place& place);

  std::string path() const { return path_of(place_, name_); }

 private:
  struct Copy {
    std::uint64_t sequence = 0;  // 0: there is none
    DurableText content;
    std::size_t number = 1;  // of the two
  };

  Result<bool> open();
  Result<Copy> find_newest() const;
  Result<void> settle(const Copy& newest);
  Result<void> put(const Copy& copy);
  Result<void> mark(char state);

  Place place_;
  const std::string name_;
  std::optional<LockFile> file_;
  bool is_locked_ = false;
  std::optional<Copy> newest_;  // as it was read while the file is locked
};

}  // namespace dlock::file
