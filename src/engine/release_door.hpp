// Where whoever keeps a lock for a script can be asked to release it: a local socket, whose name is
// the first half of the token, as it is shown to everybody.  Who asks has to know all of it.
#pragma once

#include <optional>
#include <string>

#include "core/result.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace dlock {

/// The keeper's side.  Used by one thread.
class ReleaseDoor {
 public:
  /// Starts to listen for this lock.  Where that cannot be done nobody can ask here: a release then
  /// reaches the keeper through the service, as from another host.
  ReleaseDoor(std::string key, std::string token);

  const std::string& key() const { return key_; }
  int fd() const { return listener_.get(); }  // -1: it does not listen

  /// Somebody who may has asked for a release, and waits on this socket for its outcome.  None:
  /// nobody has.
  Fd asked();
  static void answer(const Fd& who_asked, const Result<void>& outcome);

 private:
  std::string key_;
  std::string token_;
  Fd listener_;
};

/// Asks whoever keeps the lock `key` with this token on this machine to release it.  None: nobody
/// does, or not for this user.  Else what became of the release; Errc::unreachable if that was not
/// heard until the deadline.
std::optional<Result<void>> ask_keeper(const std::string& key, const std::string& token,
                                       Deadline deadline);

}  // namespace dlock
