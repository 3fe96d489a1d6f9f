// Being told that a file was replaced, deleted or written, or that one in a folder was deleted.
#pragma once

#include <vector>

#include "util/fd.hpp"

namespace dlock::file {

/// An inotify instance on open files, whatever their names are by now.
class Watch {
 public:
  enum class For { replaced, replaced_or_written, moved_directory, deleted_in };

  /// False if the user's share of instances or watches is used up, or without /proc.
  bool add(int fd, For what);
  int fd() const { return inotify_.get(); }
  void drain();

  /// Forgets all files.  To close an instance that has watched something a moment ago takes the
  /// kernel some 15 ms; to clear it takes none, and closing it later none either.
  void clear();

 private:
  Fd inotify_;
  std::vector<int> watches_;
};

}  // namespace dlock::file
