// The session of those who look, and of what is kept beside the locks.
#pragma once

#include <memory>
#include <type_traits>

#include "backends/zookeeper/session.hpp"

namespace dlock::zookeeper {

/// Opened when it is first needed, and again when it has ended meanwhile.
class LookingSession {
 public:
  explicit LookingSession(std::shared_ptr<const Place> place) : place_(std::move(place)) {}
  ~LookingSession();
  LookingSession(const LookingSession&) = delete;
  LookingSession& operator=(const LookingSession&) = delete;

  const Place& place() const { return *place_; }

  /// With a connection that has answered a moment ago, unless nobody has used it for long.
  Result<Session*> open(Deadline deadline);

  /// `ask` with the session.  One that was not used for long may have ended, which only the answer
  /// to a request tells: then it is asked again in a new one.
  template <class Ask>
  std::invoke_result_t<Ask, Session&> with(Deadline deadline, Ask ask) {
    for (;;) {
      const auto session = open(deadline);
      if (!session) return session.error();
      auto result = ask(*session.value());
      if (result || result.error().code != Errc::lost || Clock::now() >= deadline) return result;
    }
  }

  /// The present session is to outlive this object for a while, with its nodes.
  void leave_open() { is_left_open_ = true; }

 private:
  const std::shared_ptr<const Place> place_;
  std::unique_ptr<Session> session_;
  bool is_left_open_ = false;
};

}  // namespace dlock::zookeeper
