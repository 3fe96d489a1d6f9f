// A directory for one test.
#pragma once

#include <string>

namespace dlock::test {

/// A directory of our own below `parent`, deleted at the end.
class TempDir {
 public:
  explicit TempDir(const std::string& parent = "/dev/shm");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dlock::test
