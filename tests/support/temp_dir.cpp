#include "support/temp_dir.hpp"

#include <cstdlib>
#include <filesystem>

namespace dlock::test {

TempDir::TempDir(const std::string& parent) : path_(parent + "/dlock-test-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace dlock::test
