// URLs of servers, for each backend.
#include <cstdint>
#include <string_view>

#include "backends/registry.hpp"
#include "core/url.hpp"

using namespace dlock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto url = parse_url({reinterpret_cast<const char*>(data), size});
  if (!url) return 0;
  (void)url.value().redacted();
  for (const BackendEntry& entry : builtin_backends()) {
    if (entry.check != nullptr) (void)entry.check({.url = url.value()});
  }
  return 0;
}
