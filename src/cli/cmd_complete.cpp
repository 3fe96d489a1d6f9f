#include "cli/cmd_complete.hpp"

#include "cli/layers.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "core/secret.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// A bad config file is reported when the command runs.  During completion the message would only
// disturb.
std::string profiles(const Invocation& invocation) {
  std::string out;
  const auto config = find_config(given_settings(invocation));
  if (!config || !config.value()) return out;
  for (const ConfigProfile& profile : config.value()->profiles) {
    out += util::printable(profile.name) + "\tprofile\n";
  }
  return out;
}

}  // namespace

int cmd_complete(const Invocation& invocation, std::span<const BackendEntry> backends) {
  if (invocation.operands.front() != "backends") {
    refuse_usage("nothing is known of " + shown_word(invocation.operands.front()));
  }
  std::string out;
  for (const BackendEntry& entry : backends) {
    if (entry.open != nullptr)
      out += std::string(entry.name) + '\t' + std::string(entry.brief) + '\n';
  }
  return write_stdout(out + profiles(invocation));
}

}  // namespace dlock::cli
