// A small text on a disk that is replaced in one step, and never goes back: neither when a process
// is killed, nor when the power fails.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"

namespace dlock::file {

/// Locked by this process while this lives.
class DurableFile {
 public:
  /// Creates it when missing.  Waits for the processes that have it now; Errc::unreachable if one
  /// of them does not go on (stopped?) until the deadline.
  static Result<DurableFile> open(Place place, Deadline deadline);

  /// None: it was never written.  Errc::conflict: something else is in the file.
  Result<std::optional<std::string>> read();

  /// After read().  The text is on the disk when this returns; if it fails, it may be there or not.
  Result<void> write(std::string_view text);

  const std::string& path() const { return place_.shown; }

 private:
  DurableFile(Place place, LockFile latch, LockFile file)
      : place_(std::move(place)), latch_(std::move(latch)), file_(std::move(file)) {}
  Result<void> put(std::size_t copy, const std::string& bytes);
  Result<void> mark(char state);

  Place place_;
  LockFile latch_;
  LockFile file_;
  std::size_t newest_ = 1;      // the copy that counts
  std::uint64_t sequence_ = 0;  // its; 0: there is none
  std::string bytes_;           // of it
};

}  // namespace dlock::file
