// This file is compiled again at each commit, so it holds nothing else.
#include "cli/build_version.hpp"

namespace dlock::cli {
namespace {
#include "cli/build.inc"
}  // namespace

std::string_view build_version() { return kBuild; }

}  // namespace dlock::cli
