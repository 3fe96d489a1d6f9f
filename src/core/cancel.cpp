#include "core/cancel.hpp"

#include "util/poll.hpp"

namespace dlock {

bool Cancel::requested() const { return fd_ >= 0 && util::wait_readable(fd_, Deadline{}); }

}  // namespace dlock
