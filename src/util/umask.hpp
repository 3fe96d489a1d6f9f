// The mode of the files that dlock creates does not depend on the umask.
#pragma once

#include <sys/types.h>

namespace dlock::util {

/// The umask that the user gave, which is for the command and for what dlock writes for the user.
/// The first call sets that of dlock itself to 0, for good: a umask belongs to all threads of a
/// process, so to change it for one file and back is seen by whatever another thread creates or
/// starts in between.
mode_t users_umask();

}  // namespace dlock::util
