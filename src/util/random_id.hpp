// Names that nobody else has.
#pragma once

#include <string>

namespace dlock::util {

/// 128 bits from getrandom(2) as 32 lower-case hex digits.  Aborts if the kernel has none to give.
std::string random_id();

}  // namespace dlock::util
