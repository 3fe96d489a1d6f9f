// A process that dlock did not start, and all that is below it: the script that `acquire --while`
// keeps a lock for.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

/// Its descendants are found from above, by /proc, once it is to end, and remembered from then on.
/// What has left the tree before that, or between two looks, is not found.  Used by one thread.
class Script {
 public:
  /// Errc::invalid, in words for whoever gave the number: there is no such process, it is none
  /// above this one, it may not be signalled, or no signal ends it.
  static Result<Script> find(pid_t pid);

  pid_t pid() const { return pid_; }
  /// "deploy.sh (pid 4121)"
  std::string in_words() const;
  /// Readable when the process itself has ended.
  int fd() const { return known_.front().pidfd.get(); }
  bool has_ended() const;

  /// This process is none of it, although the kernel may have made it a child of the script.
  void spare(pid_t pid);

  /// SIGTERM to all of it now (not if `kill_at` has come), SIGKILL at `kill_at`, or earlier if that
  /// was said before.
  void end(Deadline kill_at, Deadline now);
  bool is_ending() const { return is_ending_; }
  /// It has not died of the SIGKILL; in words.
  bool is_stuck(Deadline now) const;
  std::string why_stuck() const;

  /// Signals what is due.  True when nothing has to be watched any more: the script has ended by
  /// itself, or, once it is being ended, all of it has.
  bool finished(Deadline now);
  /// When finished() is to be called again at the latest.
  Deadline next_deadline(Deadline now) const;

 private:
  struct Known {
    pid_t pid;
    Fd pidfd;
  };

  Script(pid_t pid, Fd pidfd, std::string name);
  bool is_spared(pid_t pid) const;
  void note(pid_t pid, pid_t parent);
  bool find_more();
  void stop_all();
  void kill_all();
  bool all_have_ended() const;

  pid_t pid_;
  std::string name_;
  std::vector<Known> known_;  // the script first, parents before their children
  std::vector<Known> spared_;
  int sends_ = 0;          // to what is found and cannot be remembered
  bool is_blind_ = false;  // there was such a process at the last look
  bool is_ending_ = false;
  Deadline kill_at_ = kNever;
};

/// A script takes a descriptor for each of its processes: as many as the system allows.
void raise_descriptor_limit();

}  // namespace dlock
