// The end of a lease, told to all who must act before it.
#pragma once

#include "engine/link.hpp"
#include "engine/margins.hpp"
#include "util/fd.hpp"

namespace dlock {

/// Says when the lease ends in the shared page, to whoever looks; and sets an alarm to the instant
/// at which the end of the tree must begin, so that nobody need look as long as it is renewed.
class LeaseEnd {
 public:
  LeaseEnd(SharedPage& page, Margins margins, Deadline valid_until);

  Deadline get() const { return page_.lease_end(); }
  /// By one thread at a time.
  void move_to(Deadline valid_until);
  /// Readable from Margins::term_at() on, or a little sooner: a hint to look at get().  A copy in
  /// another process follows it.  -1: there is none; the lease has no end, or the system had no
  /// descriptor left, and then the clock must do.
  int alarm_fd() const { return alarm_.get(); }

 private:
  SharedPage& page_;
  const Margins margins_;
  Fd alarm_;
};

}  // namespace dlock
