// URLs of servers, for each backend.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backends/registry.hpp"
#include "core/url.hpp"

using namespace dlock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto url = parse_url({reinterpret_cast<const char*>(data), size});
  if (!url) return 0;
  (void)url.value().redacted();
  // How to get in is no part of the place.
  Url other = url.value();
  if (!other.password.empty()) other.password += '!';
  for (const BackendEntry& entry : builtin_backends()) {
    if (entry.place == nullptr) continue;
    const auto one = entry.place({.url = url.value()});
    const auto two = entry.place({.url = other});
    if (one.has_value() != two.has_value() || (one && one.value() != two.value())) std::abort();
  }
  return 0;
}
