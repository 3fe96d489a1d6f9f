// What launcher and supervisor share: one page of memory and a pair of sockets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/run.hpp"
#include "engine/waiting.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

/// Until when a lock is ours; kNever if nothing ends it, or while there is no lock.
class LeaseEnd {
 public:
  Deadline get() const { return Deadline(Deadline::duration(instant_.load())); }
  void set(Deadline end) { instant_ = end.time_since_epoch().count(); }

 private:
  std::atomic<Deadline::rep> instant_{kNever.time_since_epoch().count()};
};

/// What `acquire` hands out besides the lease end.  Not initialised: a run touches no such page.
struct GrantOnPage {
  std::array<char, 65> token;  // a text that ends with a 0
  std::uint64_t fence;         // 0: there is none
  unsigned slot;               // 0: there is none
};

/// The state of a grant of `acquire`.  The launcher hands it out or the keeper withdraws it, never
/// both, unless the launcher is killed before it is done.  Done: the launcher only has to return.
enum class HandOut : int { open, begun, withdrawn, done };

/// The data for the last event of a key, which either process may write.
struct KeyOnPage {
  std::atomic<Deadline::rep> asked_at{0};    // since when it is waited for; 0: it is not
  std::atomic<Millis::rep> waited{0};        // the time waited before that
  std::atomic<Deadline::rep> granted_at{0};  // 0: no event has said so
  std::atomic<bool> borrowed{false};
  std::atomic<bool> lost{false};
  std::atomic<bool> ended{false};  // that event is written
};

/// Read by the launcher even while the supervisor is stopped.  Written by the supervisor, but for
/// `hand_out`, and for the last events of the keys if the supervisor was killed.
struct SharedPage {
  std::array<LeaseEnd, kMostKeys> leases;
  std::array<KeyOnPage, kMostKeys> keys;
  std::array<GrantOnPage, kMostKeys> grants;  // before ToLauncher::Kind::granted
  /// The launcher or the guard watches lease_end(): from the grant, or for a script from when it
  /// counts on the locks, until the job has ended; never with --on-lost ignore.
  std::atomic<bool> guarded{false};
  std::atomic<Millis::rep> kill_after{0};  // of Margins, from then on
  std::atomic<bool> granted{false};
  std::atomic<HandOut> hand_out{HandOut::open};
  std::atomic<bool> kept{false};  // of `acquire`: the script relies on its locks
  std::atomic<std::uint64_t> fence{0};
  std::atomic<Deadline::rep> granted_at{0};
  /// The job is over.  From here on the supervisor is told of signals that ask to end, and of no
  /// others: any message ends its tries to release the lock.
  std::atomic<bool> job_ended{false};

  /// Set last, before the supervisor closes its end of the link: the run is over.
  std::atomic<bool> ended{false};
  std::atomic<int> exit_status{0};
  std::atomic<bool> left_behind{false};  // it stays to keep the locks: do not wait for it

  /// Called by the launcher and the keeper.  True for the first one: it may do that.
  bool decide(HandOut what) {
    HandOut expected = HandOut::open;
    return hand_out.compare_exchange_strong(expected, what);
  }

  /// The end of the lease that ends first.
  Deadline lease_end() const;
};

struct ToSupervisor {
  enum class Kind {
    go,      // the grant was seen, and no signal came before it: start the command
    signal,  // a signal that dlock received
  };
  Kind kind = Kind::go;
  int signal = 0;
  bool from_terminal = false;  // then the command has received it, too
};

struct ToLauncher {
  enum class Kind {
    blocked,   // another holds a lock: what the waiting message is made of
    lock_fds,  // copies of some of the locks' Lease::lock_fds()
    granted,   // all locks
  };
  Kind kind = Kind::granted;
  Blocked blocked = {};
};

/// One end.  fd() is readable when a message is there, and when the other process has ended.
template <class In, class Out>
class LinkEnd {
 public:
  explicit LinkEnd(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  /// Never blocks and never raises SIGPIPE.  False, with errno set, if the message will not arrive
  /// although the other end is open.
  bool send(const Out& message, std::span<const int> passed = {});
  /// Whether the other end has read nearly all that was sent: there is room for more.
  bool has_room() const;
  /// The next message; none if there is none now, or if the other end is closed (closed()).  The
  /// descriptors that came with it are appended to `passed`.
  std::optional<In> receive(std::vector<Fd>* passed = nullptr);
  bool closed() const { return !fd_; }
  void close() { fd_.reset(); }

 private:
  Fd fd_;
};

using LauncherEnd = LinkEnd<ToLauncher, ToSupervisor>;
using SupervisorEnd = LinkEnd<ToSupervisor, ToLauncher>;

struct Link {
  SharedPage* page = nullptr;  // lives as long as the processes
  Fd launcher;
  Fd supervisor;
};

/// None, with errno set, if the system has no resources left.
std::optional<Link> make_link();
/// The same with an existing page.
std::optional<Link> make_link(SharedPage& page);

/// When the process at the other end of this pipe or socket ends, SIGCONT continues this one.
void wake_at_end_of(int other);

}  // namespace dlock
