// What front and supervisor share: one page of memory and a pair of sockets.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

/// Written by the supervisor, read by the front even while the supervisor is stopped.
struct SharedPage {
  /// Moved by LeaseEnd.
  std::atomic<Deadline::rep> valid_until{Deadline::max().time_since_epoch().count()};
  /// From the grant until the tree is dead: the front watches valid_until.
  std::atomic<bool> guarded{false};
  std::atomic<Millis::rep> kill_after{0};  // of Margins, from then on
  std::atomic<bool> granted{false};
  std::atomic<std::uint64_t> fence{0};
  std::atomic<Deadline::rep> granted_at{0};

  Deadline lease_end() const { return Deadline(Deadline::duration(valid_until.load())); }
};

namespace to_supervisor {
struct Go {};  // the grant was seen, no signal came before it: start the command
struct Signal {
  int number = 0;
  bool from_terminal = false;  // then the command has got it already
};
}  // namespace to_supervisor
using ToSupervisor = std::variant<to_supervisor::Go, to_supervisor::Signal>;

namespace to_front {
struct Blocked {  // who is in the way, for the waiting message
  std::string holder;
  std::optional<Millis> held;
  std::optional<unsigned> waiting;
};
struct Leased {  // comes before Granted, if the lock is one that ends by itself
  Fd alarm;      // LeaseEnd::alarm_fd(): rings when it was not renewed in time
};
struct Granted {
  Fd witness;  // Lease::witness_fd(), or none
};
struct Ended {
  int exit_status = 0;
  bool left_behind =
      false;  // the supervisor stays to keep the lock (--min-hold): do not wait for it
};
}  // namespace to_front
using ToFront =
    std::variant<to_front::Blocked, to_front::Leased, to_front::Granted, to_front::Ended>;

/// One end.  Sending never blocks and never raises SIGPIPE; what the other end cannot take any more
/// is dropped.  fd() is readable when a message is there, and at the end of the other process.
template <class In, class Out>
class LinkEnd {
 public:
  explicit LinkEnd(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  void send(const Out& message);
  /// The next message; none if there is none now, or if the other end is closed (closed()).
  std::optional<In> receive();
  bool closed() const { return closed_; }

 private:
  Fd fd_;
  bool closed_ = false;
};

using FrontEnd = LinkEnd<ToFront, ToSupervisor>;
using SupervisorEnd = LinkEnd<ToSupervisor, ToFront>;

struct Link {
  SharedPage* page = nullptr;  // lives as long as the processes
  Fd front;
  Fd supervisor;
};

/// None, with errno set, if the system has no more to give.
std::optional<Link> make_link();

}  // namespace dlock
