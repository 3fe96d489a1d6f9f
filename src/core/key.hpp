// What a key may look like: the one place that knows.
#pragma once

#include <string_view>

#include "core/result.hpp"

namespace dlock {

inline constexpr std::size_t kMaxKeyLength = 255;

/// Ok for 1 to 255 bytes of UTF-8 without control characters; else Errc::invalid, naming the fault.
/// `what` is how the message calls it.
Result<void> check_key(std::string_view key, std::string_view what = "key");

}  // namespace dlock
