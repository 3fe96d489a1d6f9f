// Which other lock library took a lock, told by the shape of what it left there.
#pragma once

#include <string_view>

#include "core/backend.hpp"

namespace dlock::redis {

/// Who left `text` at a lock of the type `type`: a string's value, a hash's field or a zset's
/// member.  `count`: what a hash has under the field.  `foreign` is the name of the library, or
/// "unknown"; `owner.id` is what force-release compares, "" where nothing there is a holder's own.
LockInfo::Holder foreign_holder(std::string_view type, std::string_view text,
                                std::string_view count = {});

}  // namespace dlock::redis
