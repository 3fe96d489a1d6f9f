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
  /// run left there, so that a script never reads that.  A regular file is replaced, a descriptor
  /// (/dev/fd/N, /dev/stdout) is written to.  Errc::invalid says why not, also for anything else
  /// that is there: it may be another user's, or a link to what is not to be written over.
  static Result<StatusFile> prepare(const std::string& path);

  /// Writes the outcome as JSON, whole or not at all.  Says so if it cannot.
  void write(const std::string& key, const Outcome& outcome) const;

 private:
  std::string path_;
  Fd descriptor_;
};

}  // namespace dlock
