// "Stop waiting now", in a form that can be polled beside a socket.
#pragma once

namespace dlock {

/// A view: the engine owns the descriptor, which turns readable (or hangs up) once and stays so.
class Cancel {
 public:
  Cancel() = default;  // never fires
  explicit Cancel(int fd) : fd_(fd) {}
  int fd() const { return fd_; }  // -1: never fires; poll(2) skips it
  bool requested() const;

 private:
  int fd_ = -1;
};

}  // namespace dlock
