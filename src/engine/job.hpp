// The command and every process below it: started once, signalled, ended, reaped.
#pragma once

#include <optional>
#include <string>

#include "engine/run.hpp"
#include "process/command.hpp"
#include "process/ending.hpp"
#include "process/process_tree.hpp"

namespace dlock {

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT.  They go to the whole job: a shell that dies of SIGTERM
/// leaves its child running, and that child is the job.
bool asks_to_end(int sig);

/// Used by one thread, which forks.  The calling process must be a subreaper.
class Job final : public Ending {
 public:
  /// `tree` lives as long as the job.
  Job(Leftovers leftovers, ProcessTree& tree) : leftovers_(leftovers), tree_(tree) {}

  void start(const CommandSpec& spec, const Inherited& inherited, Millis kill_after);
  bool started() const { return pid_ > 0; }
  /// errno of the fork or exec that failed; 0 if none did.
  int start_error() const { return start_error_; }

  /// Passes a signal on: to the whole tree if asks_to_end(), else to the command alone.  A signal
  /// from the terminal has reached the command already and is only noted.
  void signal(int sig, bool from_terminal);

  std::string in_words() const override;
  int end(Deadline kill_at, Deadline now) override;

  /// Reaps what has ended, kills what is due, and returns whether nothing is left to watch: the
  /// tree is gone but for keepers of others' locks, or the rest may go on (--leftovers ignore).
  bool advance(Deadline now) override;
  Deadline next_deadline(Deadline now) const override;

  bool tree_is_gone() const { return gone_; }
  const std::string& stuck() const override { return stuck_; }
  /// The last signal by which it was asked to end; 0: there was none.
  int asked_to_end_by() const { return asked_to_end_by_; }
  /// The command's wait status; none while it runs.
  std::optional<int> status() const { return status_; }

 private:
  const Leftovers leftovers_;
  Millis kill_after_{0};
  ProcessTree& tree_;
  std::string name_;
  pid_t pid_ = -1;
  int start_error_ = 0;
  std::optional<int> status_;
  int asked_to_end_by_ = 0;
  bool ending_ = false;
  Deadline kill_at_ = kNever;
  std::string stuck_;
  bool gone_ = false;
};

}  // namespace dlock
