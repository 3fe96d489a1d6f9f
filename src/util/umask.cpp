#include "util/umask.hpp"

#include <sys/stat.h>

namespace dlock::util {

mode_t users_umask() {
  static const mode_t given = ::umask(0);
  return given;
}

}  // namespace dlock::util
