#include "util/jitter.hpp"

#include <random>

namespace dlock::util {

Millis jitter(Millis least, Millis most) {
  static thread_local std::minstd_rand random(std::random_device{}());
  return Millis{std::uniform_int_distribution<Millis::rep>(least.count(), most.count())(random)};
}

}  // namespace dlock::util
