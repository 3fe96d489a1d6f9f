// Who holds a lock and who waits for it is registered: each holder and each waiter keeps a file of
// its own beside the lock file, in the folder `key~w`.  A registration counts while it is flocked,
// so it ends with its process.  The lock itself does not depend on it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/file/lock_dir.hpp"
#include "backends/file/record.hpp"
#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// What a registration is of: the first byte of the file, which is written before it is renamed.
enum class State : char {
  trying = 't',  // has just come
  waits = 'w',
  holds = 'h',
  ended = 'e',  // holds, but its command has ended (--min-hold)
  told = 'r',   // holds, and has read that its lock was force-released
  let_go = '-',
};

/// Ours.
class Registration {
 public:
  /// Registers the calling process as State::trying.  Where the disk is full it is registered
  /// nowhere, and all that follows does nothing.
  static Result<std::unique_ptr<Registration>> make(std::shared_ptr<const Place> place);
  /// Removes the file, unless the lock is held: then it counts for as long as anybody has a copy of
  /// fd(), and is removed by whoever finds it after that.
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  void wait(const Record& record);
  /// The process that is about to call flock(2) on the lock file.
  void locks_by(pid_t pid);

  /// `lock_pid` is the process that has called flock(2) on the lock file.
  void hold(const Record& record, pid_t lock_pid);
  /// A holder's: State::ended, told or let_go.
  void set(State state);
  /// Ok if others can find it.  Errc::unreachable if it could not be written, Errc::lost if
  /// somebody has deleted it.
  Result<void> check() const;
  /// Why the lock was force-released; none if it was not.
  std::optional<std::string> revoked() const;
  /// A holder's that somebody has deleted is made again; true if it was.
  bool restore();
  /// For everybody, in spite of copies of fd().
  void remove();

  /// -1: there is none.  Whoever has a copy keeps the registration.
  int fd() const { return file_.get(); }
  /// Of the folder of the registrations; -1: as above.
  int folder() const { return roster_.get(); }

 private:
  explicit Registration(std::shared_ptr<const Place> place) : place_(std::move(place)) {}
  void write(State state, pid_t lock_pid, const std::string& line);
  void rename_to(char kind);

  std::shared_ptr<const Place> place_;
  Fd roster_;  // the folder that the file is in: by its name there may be another by now
  Fd file_;
  std::string name_;
  off_t size_ = 0;
  State state_ = State::trying;
  pid_t lock_pid_ = 0;
  bool held_ = false;
  std::string line_;  // what it says of the holder
};

// The parts of a registration, for those who read it: `t 0000004121 00000000004026531836\n`, the
// record, and perhaps a revocation.

/// As /proc/locks has the process that locks the lock file, or is to.
inline constexpr std::size_t kPidAt = 2;
inline constexpr std::size_t kPidDigits = 10;
/// Of the pid namespace in which that is its number.
inline constexpr std::size_t kNamespaceAt = kPidAt + kPidDigits + 1;
inline constexpr std::size_t kNamespaceDigits = 20;
inline constexpr std::size_t kHeadSize = kNamespaceAt + kNamespaceDigits + 1;

/// Into the file that has this descriptor.  Async-signal-safe.
void write_pid(int registration, pid_t pid);

/// The first letter of the name of a registration: for those who count, and who look only at
/// holders.  One that is trying has that of a holder, which most become at once.
inline constexpr char kHolder = 'h';
inline constexpr char kWaiter = 'w';
bool is_registration(std::string_view name);

/// The folder of a key, for openat(2) and the like; none, with errno set, if there is none.
Fd open_roster(const Place& place);

}  // namespace dlock::file
