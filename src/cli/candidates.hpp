// What a shell can offer for the word under the cursor.
#pragma once

#include <span>
#include <string>

#include "cli/typed_words.hpp"
#include "core/backend.hpp"

namespace dlock::cli {

/// The answer of `dlock complete` (cmd.hpp).  For keys, asks the backend that the words
/// name, as `dlock list` does.  Throws Refusal for settings that are invalid.
std::string candidates(const TypedWords& typed, std::span<const BackendEntry> backends);

}  // namespace dlock::cli
