// Variables, config keys and options that there are not, and what was perhaps meant.
#pragma once

#include <string>
#include <string_view>

namespace dlock::cli {

/// Names each variable that begins with DLOCK_ and is not read: to be without the lock is worse
/// than a line too many, so also with -q.  Not those that dlock sets for a command, nor those that
/// Kubernetes sets for a service of this name.
void warn_of_unknown_variables();

/// What to write instead of a config key that is unknown: "; did you mean \"wait\"?", "; use the
/// option --shared", or nothing.
std::string advice_on_key(std::string_view key);

/// The same of an option, without its dashes.
std::string advice_on_option(std::string_view name);

}  // namespace dlock::cli
