// Which namespace the numbers in a record belong to, and small files of the kernel.
#pragma once

#include <cstdint>
#include <string>

namespace dlock::util {

/// Names the pid namespace of this process; 0 where the kernel does not tell.
std::uint64_t pid_namespace();

/// The first `most` bytes of a small file such as those of /proc; "" if it cannot be read.
std::string read_small_file(const std::string& path, std::size_t most);

}  // namespace dlock::util
