#include "support/test_registry.hpp"

#include <algorithm>
#include <vector>

#include "backends/registry.hpp"
#include "support/faulty_backend.hpp"
#include "support/memory_backend.hpp"

namespace dlock::test {

std::span<const BackendEntry> test_backends() {
  static const std::vector<BackendEntry> rows = [] {
    const auto builtin = builtin_backends();
    std::vector<BackendEntry> all(builtin.begin(), builtin.end());
    all.push_back(memory_entry());
    all.push_back(faulty_entry());
    return all;
  }();
  return rows;
}

const BackendEntry* find_backend(std::string_view name) {
  for (const BackendEntry& entry : test_backends()) {
    if (entry.name == name || (!name.empty() && std::ranges::count(entry.aliases, name) > 0))
      return &entry;
  }
  return nullptr;
}

}  // namespace dlock::test
