// What `dlock once` remembers on this host: the marks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file/lock_dir.hpp"
#include "core/backend.hpp"

namespace dlock::file {

// See Backend.  `locks`: the directory of the locks.  `may_warn`: no warning was given yet.
Result<std::optional<Mark>> find_mark(const LockDir& locks, const MarkName& name);
Result<void> prepare_marks(const LockDir& locks, std::string_view key, bool may_warn);
Result<std::vector<Mark>> list_marks(const LockDir& locks, std::string_view prefix);
Result<bool> forget_mark(const LockDir& locks, const MarkName& name);

/// Where the marks of a key are.
struct MarkFolder {
  Fd fd;
  std::string path;
};

struct MarkFile {
  std::int64_t fence = 0;   // 0: there is none
  std::int64_t expiry = 0;  // in milliseconds since 1970
  std::string period;

  std::string name() const;
};

/// A mark of the holder of the lock.
class NewMark {
 public:
  /// On the disk; it does not count yet.
  static Result<std::unique_ptr<NewMark>> write(const LockDir& locks, std::string_view key,
                                                const Completion& completion, const Owner& owner,
                                                std::optional<std::uint64_t> fence);
  /// Takes it back if it does not count.
  ~NewMark();
  NewMark(const NewMark&) = delete;
  NewMark& operator=(const NewMark&) = delete;

  /// From now on it counts.  Only while the lock is ours.
  Result<void> publish();
  /// That is durable when this returns, and earlier marks of its name are gone.  May be repeated.
  Result<void> settle();

  const MarkFolder& folder() const { return folder_; }

 private:
  NewMark(MarkFolder folder, std::string draft)
      : folder_(std::move(folder)), draft_(std::move(draft)) {}

  Result<void> make_durable() const;

  MarkFolder folder_;
  std::string draft_;  // its name while it does not count; else ""
  MarkFile file_;
};

}  // namespace dlock::file
