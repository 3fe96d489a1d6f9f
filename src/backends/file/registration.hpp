// Each holder and each waiter of a lock keeps a file of its own, its registration, in the folder
// `key~w` beside the lock file.  A registration counts while it is flocked: until the last process
// that has its descriptor ends.  An exclusive lock does not depend on it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/file/lock_dir.hpp"
#include "backends/file/record.hpp"
#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// The first byte of a registration.  It is written before the file is renamed.
enum class State : char {
  trying = 't',  // has just arrived
  waits = 'w',
  holds = 'h',
  ended = 'e',   // holds, but its command has ended (--min-hold)
  broken = 'r',  // holds, and has read that its lock was force-released
  released = '-',
};

/// That of this process.
class Registration {
 public:
  /// Registers the calling process as State::trying.  If the disk is full, there is no file, and
  /// the other functions do nothing.
  static Result<std::unique_ptr<Registration>> make(std::shared_ptr<const Place> place);
  /// Removes the file, unless the lock is held.  Then the file counts while any process has a copy
  /// of fd(), and the next reader of the registrations removes it after that.
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  void mark_waiting(const Record& record);
  /// The process that is about to call flock(2) on the lock file.
  void locks_by(pid_t pid);

  /// `lock_pid` is the process that has called flock(2) on the lock file.
  void mark_holding(const Record& record, pid_t lock_pid);
  /// A holder's: State::ended, broken or released.
  void set(State state);
  /// Ok if others can find the file.  Errc::unreachable if it could not be written, Errc::lost if
  /// it was deleted.
  Result<void> check() const;
  /// The reason that force_release() has written; none if the lock was not force-released.
  std::optional<std::string> revoked() const;
  /// If the file of a holder was deleted, makes another one and returns true.
  bool restore();
  /// Removes the file, in spite of copies of fd().
  void remove();

  /// -1: there is no file.  A process that has a copy keeps the registration.
  int fd() const { return file_.get(); }
  /// The folder of the registrations; -1: as above.
  int folder() const { return folder_.get(); }

 private:
  explicit Registration(std::shared_ptr<const Place> place) : place_(std::move(place)) {}
  void write(State state, pid_t lock_pid, const std::string& line);
  void rename_to(char kind);

  std::shared_ptr<const Place> place_;
  Fd folder_;  // that the file is in; by now another one may have its name
  Fd file_;
  std::string name_;
  off_t size_ = 0;
  State state_ = State::trying;
  pid_t lock_pid_ = 0;
  bool held_ = false;
  std::string line_;  // the record of the holder
};

// The parts of a registration, for its readers: `t 0000004121 00000000004026531836\n`, the record,
// and perhaps a revocation.

/// The pid, as in /proc/locks, of the process that locks the lock file or is about to.
inline constexpr std::size_t kPidAt = 2;
inline constexpr std::size_t kPidDigits = 10;
/// The pid namespace of that pid.
inline constexpr std::size_t kNamespaceAt = kPidAt + kPidDigits + 1;
inline constexpr std::size_t kNamespaceDigits = 20;
inline constexpr std::size_t kRegistrationHeadSize = kNamespaceAt + kNamespaceDigits + 1;

/// Into the file that has this descriptor.  Async-signal-safe.
void write_pid(int registration, pid_t pid);

/// The first letter of the name of a registration, so that waiters can be counted and left out
/// without being opened.  A process that is trying has the letter of a holder, since most are
/// granted the lock at once.
inline constexpr char kHolder = 'h';
inline constexpr char kWaiter = 'w';
bool is_registration(std::string_view name);

/// The folder of a key, for openat(2).  None, with errno set, if it cannot be opened.
Fd open_registrations_folder(const Place& place);

}  // namespace dlock::file
