#include "cli/build_version.hpp"
#include "cli/cmd.hpp"
#include "cli/print_text.hpp"
#include "cli/source.hpp"

namespace dlock::cli {

int cmd_version(const Invocation&, std::span<const BackendEntry> backends) {
  return write_stdout("dlock " + std::string(build_version()) +
                      "\nbackends: " + backend_names(backends, true) + '\n');
}

}  // namespace dlock::cli
