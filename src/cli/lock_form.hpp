// Prints one lock as a form, for `show` and for the question of `force-release`.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cli/lock_service.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// The column where the values of a form begin.
inline constexpr std::size_t kValues = 12;

/// The holders and the waiters of a lock.  Nothing is shortened: lines are folded between words to
/// fit into `width`.
std::string lock_form(const LockInfo& lock, std::span<const Mark> marks, const LockService& service,
                      const Backend& backend, std::size_t width);

/// How to end the job of one holder, or why this is not possible: a line.
std::string how_to_end(const LockInfo::Holder& holder);

/// How to end the job or to break the lock, as commands to paste.
std::string ways_to_end(const LockInfo& lock, const LockService& service);

}  // namespace dlock::cli
