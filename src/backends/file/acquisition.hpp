// One request on its way to a grant: acquire.cpp has the argument why it is right.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "backends/file/flock_wait.hpp"
#include "backends/file/lock_dir.hpp"
#include "backends/file/lock_file.hpp"
#include "backends/file/watch.hpp"
#include "core/backend.hpp"

namespace dlock::file {

/// A reader's probe (inspect.cpp) can refuse a request that does not wait; so many in a row do not.
inline constexpr int kSpuriousRefusals = 20;

/// To be asked once, for one of the two.
class Acquisition {
 public:
  Acquisition(Place place, const Request& request, const Wait& wait)
      : place_(std::move(place)), request_(request), wait_(wait) {}

  Result<std::unique_ptr<Lease>> exclusive();
  Result<std::unique_ptr<Lease>> seated();

 private:
  enum class Step { granted, again };
  using MaybeLease = Result<std::optional<std::unique_ptr<Lease>>>;  // none: begin again

  // acquire_wait.cpp
  Result<Step> wait_for_main(int operation);
  Result<Step> wait_for_seat();
  Result<Step> wait_in_kernel(int operation, std::span<LockFile* const> files);
  Result<Step> wait_for_any(int operation, std::span<LockFile* const> files);
  void log_wait(const Result<Step>& step, std::span<LockFile* const> files, Deadline asked) const;
  Result<bool> may_wait();
  Result<bool> refused();
  Result<LockInfo> look_and_tell();
  Result<void> check_mode(const LockInfo& seen) const;
  Error cancelled() const;
  Error busy() const;

  // acquire.cpp
  Result<void> check_seats() const;
  Result<bool> take_seat();
  MaybeLease grant_exclusive();
  MaybeLease grant_seat();
  Result<std::optional<std::uint64_t>> write_grant(const Content& last, std::string* record);
  std::string record_line(std::optional<std::uint64_t> fence, pid_t lock_pid, pid_t main_pid) const;

  Place place_;
  const Request& request_;
  const Wait& wait_;
  std::optional<LockFile> main_;
  std::optional<LockFile> seat_;
  std::optional<LockFile> gate_;
  std::optional<LockInfo> told_;
  Watch watch_;
  std::unique_ptr<FlockWait> waiting_;  // beyond the grant: see FlockWait::keep_only()
  int refusals_ = 0;
};

}  // namespace dlock::file
