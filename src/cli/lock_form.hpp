// One lock for people, as a form: `show`, and what `force-release` asks about.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cli/lock_service.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// The column where the values of a form begin.
inline constexpr std::size_t kValues = 12;

/// Who holds it and who waits, nothing of it shortened.  Lines are folded between words to fit into
/// `width`.
std::string lock_form(const LockInfo& lock, std::span<const Mark> marks, const LockService& service,
                      const Backend& backend, std::size_t width);

/// What can be done about the holders, each as a command to paste.
std::string ways_to_end(const LockInfo& lock, const LockService& service);

}  // namespace dlock::cli
