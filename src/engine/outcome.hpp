// How a run ended: what the exit status, the status file and the last message are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

struct Outcome {
  std::string_view name;  // of the status file: completed, busy, lost, unreachable, denied,
                          // max-hold, signalled, not-started, error
  int exit_status = 0;
  std::string reason;  // empty: nothing to explain
  std::string backend;
  std::optional<std::uint64_t> fence;
  Millis waited{0};
  Millis held{0};
};

/// The outcome and the exit status of a lock that was not acquired.
Outcome not_acquired(const Error& error, int conflict_status);

/// --status-file.
class StatusFile {
 public:
  StatusFile() = default;  // none was asked for

  /// Finds out whether FILE can be written before anything is started, and removes what an earlier
  /// run left there, so that a script never reads that.  What is no regular file (a pipe,
  /// /dev/stdout) is opened now and written to; a regular one is replaced.  Errc::invalid says why
  /// not.
  static Result<StatusFile> prepare(const std::string& path);

  /// Writes the outcome as JSON, whole or not at all.  Says so if it cannot.
  void write(const std::string& key, const Outcome& outcome) const;

 private:
  std::string path_;
  Fd special_;
};

}  // namespace dlock
