// What can be wrong with sentinels, for dlock doctor.
#pragma once

#include "backends/redis/sentinel.hpp"
#include "core/examination.hpp"

namespace dlock::redis {

/// Asks each of them.
Findings look_at_sentinels(const Sentinels& sentinels, Deadline deadline, Cancel cancel);

}  // namespace dlock::redis
