// Which commit of dlock this is.
#pragma once

#include <string_view>

namespace dlock::cli {

/// "0.1.0"; "0.1.0+812.g1f2e3d4c" if it was built from a git checkout of 812 commits.
std::string_view build_version();

}  // namespace dlock::cli
