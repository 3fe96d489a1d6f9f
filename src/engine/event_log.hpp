// --event-log: a file to which many runs append lines of JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock {

/// A process has one at most.
class EventLog {
 public:
  EventLog() = default;  // none was asked for

  /// Finds out whether FILE can be written, and creates it if it does not exist.  `always` is on
  /// each line.  Errc::invalid says why not.
  static Result<EventLog> open(const std::string& path, const nlohmann::ordered_json& always);

  explicit operator bool() const { return !path_.empty(); }

  /// Appends one line by one write(2) of at most 4096 bytes; texts are cut if they are too long.
  /// Never waits for the reader of a pipe.  The first failure is a warning.  For all threads.
  void write(std::string_view event, std::string_view key,
             const nlohmann::ordered_json& more) const;

  /// Writes nothing from now on, and gives up what was inherited.
  void close() const;

 private:
  std::string path_;
  std::string always_;
  Fd kept_;  // a pipe or a descriptor; none: a file, which is opened for each line
};

}  // namespace dlock
