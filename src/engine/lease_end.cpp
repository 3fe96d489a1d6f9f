// The page is moved before the alarm.  Who is stopped or dies between the two leaves an alarm that
// rings too soon, and whoever hears it finds the new end in the page.  Who is stopped before both
// leaves one that rings in time.  So the alarm is never later than what the page says.

#include "engine/lease_end.hpp"

#include "util/poll.hpp"

namespace dlock {

LeaseEnd::LeaseEnd(SharedPage& page, Margins margins, Deadline valid_until)
    : page_(page), margins_(margins) {
  page_.valid_until = valid_until.time_since_epoch().count();
  if (valid_until == kNever) return;
  alarm_ = util::make_timer();
  if (!util::set_timer(alarm_, margins_.term_at(valid_until))) alarm_.reset();
}

void LeaseEnd::move_to(Deadline valid_until) {
  page_.valid_until = valid_until.time_since_epoch().count();
  if (alarm_) util::set_timer(alarm_, margins_.term_at(valid_until));
}

}  // namespace dlock
