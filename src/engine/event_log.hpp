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

  /// Checks that the file can be written, and creates it if it does not exist.  `always` is added
  /// to each line.  Errc::invalid says why it cannot be written.
  static Result<EventLog> open(const std::string& path, const nlohmann::ordered_json& always);

  explicit operator bool() const { return !path_.empty(); }

  /// Appends one line by one write(2) of at most 4096 bytes; texts that are too long are cut.
  /// Never waits for the reader of a pipe.  The first failure is logged.  Any thread may call it.
  void write(std::string_view event, std::string_view key,
             const nlohmann::ordered_json& more) const;

  /// Writes nothing from now on, and gives up an inherited descriptor.
  void close() const;

 private:
  std::string path_;
  std::string always_;
  Fd kept_;  // a pipe or a descriptor; none: a file, which is opened for each line
};

}  // namespace dlock
