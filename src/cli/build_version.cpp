// Compiled anew at each commit, and for that reason alone.
#include "cli/build_version.hpp"

namespace dlock::cli {
namespace {
#include "cli/build.inc"
}  // namespace

std::string_view build_version() { return kBuild; }

}  // namespace dlock::cli
