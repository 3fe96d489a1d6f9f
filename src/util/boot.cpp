#include "util/boot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.hpp"

namespace dlock::util {
std::string read_small_file(const std::string& path, std::size_t most) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::string text(most, '\0');
  const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::uint64_t pid_namespace() {
  static const std::uint64_t inode = [] {
    struct stat st {};
    return ::stat("/proc/self/ns/pid", &st) == 0 ? std::uint64_t{st.st_ino} : 0;
  }();
  return inode;
}

}  // namespace dlock::util
