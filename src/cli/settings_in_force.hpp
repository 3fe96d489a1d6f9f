// Which settings `dlock doctor` finds in force, and what is wrong with them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cli/diagnosis.hpp"
#include "cli/parse.hpp"
#include "cli/select_backend.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"

namespace dlock::cli {

/// A backend that is to be examined.
struct Patient {
  Diagnosis diagnosis;
  Selection selection;  // without an entry if its settings cannot be used
  Millis ttl{30'000};
};

/// Selects the backend as other commands do.  What they would refuse, or print, is a finding here.
Patient find_patient(const Invocation& invocation, Settings settings,
                     std::span<const BackendEntry> backends);

}  // namespace dlock::cli
