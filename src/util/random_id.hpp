// Random names and seeds, from getrandom(2).  Both abort if the kernel has no random bytes to give.
#pragma once

#include <string>

namespace dlock::util {

/// A name that nobody else has: 128 bits as 32 lower-case hex digits.
std::string random_id();

/// For the generators of <random>.  std::random_device calls arc4random(3), which needs glibc 2.36.
unsigned random_seed();

}  // namespace dlock::util
