#include "util/jitter.hpp"

#include <random>

#include "util/random_id.hpp"

namespace dlock::util {

Millis jitter(Millis least, Millis most) {
  static thread_local std::minstd_rand random(random_seed());
  return Millis{std::uniform_int_distribution<Millis::rep>(least.count(), most.count())(random)};
}

}  // namespace dlock::util
