// What `dlock doctor` says of one backend, as text and as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/columns.hpp"
#include "core/examination.hpp"

namespace dlock::cli {

/// A setting, and the option, variable, `file:line` or default from which it is.
struct InForce {
  std::string name, value, source;
};

struct Diagnosis {
  std::string backend;  // as a URL without secrets
  std::vector<InForce> settings;
  Findings findings;
  std::optional<int> refused;  // the exit status of settings that cannot be used

  /// Of dlock doctor.
  int exit_status(bool is_strict) const;
  /// `is_brief`: what is well is left out.
  std::string text(std::size_t width, bool is_brief) const;
  Object object() const;
};

/// "dlock 0.1.0 (file, redis), libssl.so.3, Linux 6.1.0 x86_64, Debian GNU/Linux 12 (bookworm)":
/// the client libraries are those that are loaded.
std::string this_system(const std::string& backends);

}  // namespace dlock::cli
