// --status-file: how a run ended, for scripts.
#pragma once

#include <string>

#include "core/result.hpp"
#include "engine/outcome.hpp"
#include "util/fd.hpp"

namespace dlock {

class StatusFile {
 public:
  StatusFile() = default;  // none was asked for

  /// Checks that the file can be written, before anything is started, and removes an old one, so
  /// that a script never reads that.  A regular file is replaced; a descriptor (/dev/fd/N,
  /// /dev/stdout) is written to.  Errc::invalid says why not, also for anything else, which may be
  /// another user's, or a link to a file that must not be overwritten.
  static Result<StatusFile> prepare(const std::string& path);

  /// Called once.  Writes the outcome as JSON, whole or not at all, and closes the descriptor, for
  /// whose end the reader of a pipe may wait.  Logs a failure.
  void write(const std::string& key, const Outcome& outcome);

 private:
  std::string path_;
  Fd descriptor_;
};

}  // namespace dlock
