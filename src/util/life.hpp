// Tells other processes of this machine whether any process still has a given descriptor open.
#pragma once

#include <string>
#include <string_view>

#include "util/fd.hpp"

namespace dlock::util {

/// `fd` may be copied to other processes, and is otherwise of no use.  `mark` names it on this
/// machine, and is fit for a record that others read.  No descriptor and "" if the kernel refuses
/// local sockets to this process.
struct LifeToken {
  Fd fd;
  std::string mark;
};
LifeToken make_life_token();

enum class Life {
  unknown,  // another machine, boot or network namespace, or no mark
  alive,    // a process has the descriptor open
  ended,    // none has
};

struct LifeWatch {
  Life life = Life::unknown;
  Fd ends;  // of one that is alive: turns readable when it has ended
};
LifeWatch watch_life(std::string_view mark);

}  // namespace dlock::util
