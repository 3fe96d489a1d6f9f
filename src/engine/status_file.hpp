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

  /// Finds out whether FILE can be written before anything is started, and removes what an earlier
  /// run left there, so that a script never reads that.  A pipe, a terminal and a descriptor
  /// (/dev/stdout) are opened now and written to; a regular file is replaced.  Errc::invalid says
  /// why not, also for what another user put there.
  static Result<StatusFile> prepare(const std::string& path);

  /// Writes the outcome as JSON, whole or not at all.  Says so if it cannot.
  void write(const std::string& key, const Outcome& outcome) const;

 private:
  std::string path_;
  Fd special_;
};

}  // namespace dlock
