// Small texts that a service keeps beside its locks until they are deleted, also over a restart.
// What `dlock once` remembers (core/marks.hpp) and the numbers of `dlock id` (core/numbers.hpp) are
// made of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/result.hpp"
#include "util/clock.hpp"

namespace dlock {

/// Records of different kinds, and locks, have nothing to do with each other.
enum class RecordKind { mark, number };

struct RecordName {
  RecordKind kind = RecordKind::mark;
  std::string key;     // passed check_key(); or ""
  std::string period;  // of a mark: see MarkName

  bool operator==(const RecordName&) const = default;
  bool operator<(const RecordName& other) const {
    return std::tie(kind, key, period) < std::tie(other.kind, other.key, other.period);
  }
};

/// A text has no more bytes.
inline constexpr std::size_t kLongestRecord = 16'000;

struct StoredRecord {
  RecordName name;
  std::string text;
  std::string version;       // not "", and another one if the text is another one
  std::int64_t written = 0;  // when that was, in ms since 1970 by the clock of the service
};

struct RecordLook {
  std::vector<StoredRecord> records;
  std::int64_t now = 0;  // in ms since 1970 by the clock of the service
};

/// As Backend, of which these are a part: no answer is waited for longer than the connect timeout,
/// and Errc::unreachable means that it is not known whether a step was done.  Each step is durable
/// before it succeeds, and for that reason a step whose answer was lost may be repeated.
class Records {
 public:
  Records() = default;
  virtual ~Records() = default;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  /// Where the record is, or would be, for messages: `redis h:6379: key "{job}:done:"`.
  virtual std::string shown(const RecordName& name) const = 0;

  /// The record, or none.  Sees what was written before this was called, and what one call has
  /// seen, each later call sees.  Errc::conflict if something else stands there.
  virtual Result<RecordLook> read(const RecordName& name, Deadline deadline) = 0;

  /// All marks whose keys start with `prefix`, in any order.  What is no record is left out; so is
  /// what cannot be read, with a warning.
  virtual Result<RecordLook> list(std::string_view prefix, Deadline deadline) = 0;

  /// Writes a record if its version is still `version`, or with "", if there is none.  False: it is
  /// another one.
  virtual Result<bool> write(const RecordName& name, const std::string& version,
                             const std::string& text, Deadline deadline) = 0;

  /// Deletes those marks of `seen` whose versions are still the same.  How many that were; one of
  /// which the answer was lost need not count.
  virtual Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline deadline) = 0;

  /// Makes what is missing, as a table or a directory, so that marks of this key can be written,
  /// and tells if they cannot be.  Warns if records may not outlive a restart of the service, once.
  virtual Result<void> prepare(std::string_view key, Deadline deadline) = 0;

  /// Some of the marks, by chance, so that all are looked at in the long run by those who sweep;
  /// none where the service deletes them when their time is over.
  virtual Result<RecordLook> sample(std::string_view key, Deadline deadline) = 0;
};

/// Errc::conflict: what stands at `shown` is no record.
Error no_record(const std::string& shown);

}  // namespace dlock
