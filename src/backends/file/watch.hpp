// Being told that a file was replaced, deleted or written, or that one in a folder was deleted.
#pragma once

#include <vector>

#include "util/fd.hpp"

namespace dlock::file {

/// An inotify instance on open files, independent of their names.
class Watch {
 public:
  enum class For { replaced, replaced_or_written, moved_directory, deleted_in };

  /// False if the user has no instances or watches left, or without /proc.
  bool add(int fd, For what);
  int fd() const { return inotify_.get(); }
  void drain();

  /// Forgets all files.  The kernel takes some 15 ms to close an instance that has watched a file a
  /// moment ago.  Clearing it takes no time, and neither does closing it later.
  void clear();

 private:
  Fd inotify_;
  std::vector<int> watches_;
};

}  // namespace dlock::file
