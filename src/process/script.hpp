// A script that dlock did not start, and all below it: `acquire --while` keeps a lock for it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.hpp"
#include "process/ending.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

/// Its descendants are searched for in /proc once it is to end, and remembered.  A process that
/// left the tree before that, or between two searches, is missed.  Used by one thread.
class Script final : public Ending {
 public:
  /// Errc::invalid, with a message for the user: there is no such process, it is not above this
  /// one, dlock may not signal it, or no signal ends it.
  static Result<Script> find(pid_t pid);

  pid_t pid() const { return pid_; }
  std::string in_words() const override;
  /// Readable when the process itself has ended.
  int fd() const { return known_.front().pidfd.get(); }
  bool has_ended() const;

  /// `pid` is no part of it, although the kernel may have made it a child of the script.
  void spare(pid_t pid);

  int end(Deadline kill_at, Deadline now) override;
  bool is_ending() const { return is_ending_; }
  /// True if the script has ended by itself or, once it is being ended, all of it has.
  bool advance(Deadline now) override;
  Deadline next_deadline(Deadline now) const override;
  const std::string& stuck() const override { return stuck_; }

 private:
  struct Known {
    pid_t pid;
    Fd pidfd;
  };

  Script(pid_t pid, Fd pidfd, std::string name);
  bool is_spared(pid_t pid) const;
  void note(pid_t pid, pid_t parent);
  bool find_more();
  bool all_are_stopped() const;
  void stop_all(Deadline until);
  void kill_all();
  bool all_have_ended() const;

  pid_t pid_;
  std::string name_;
  std::vector<Known> known_;  // the script first, parents before their children
  std::vector<Known> spared_;
  int sends_ = 0;          // for processes without a pidfd; 0: nothing
  bool is_blind_ = false;  // the last search found such a process
  bool is_ending_ = false;
  Deadline kill_at_ = kNever;
  std::string stuck_;
};

/// Raises the limit to what the system allows: a Script needs a descriptor for each process.
void raise_descriptor_limit();

}  // namespace dlock
