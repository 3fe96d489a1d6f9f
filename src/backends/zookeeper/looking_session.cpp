#include "backends/zookeeper/looking_session.hpp"

namespace dlock::zookeeper {
namespace {

constexpr Millis kLooking{10'000};  // its timeout

}  // namespace

LookingSession::~LookingSession() {
  if (session_ && !is_left_open_) session_->close();
}

Result<Session*> LookingSession::open(Deadline deadline) {
  deadline = place_->answer_by(deadline);
  if (session_) session_->look();
  if (session_ && session_->connected()) return session_.get();
  if (session_) {
    const auto again = session_->open(deadline, Cancel());
    if (again) return session_.get();
    if (!session_->expired()) return again.error();
  }
  session_ = std::make_unique<Session>(place_, kLooking);
  is_left_open_ = false;
  if (auto ok = session_->open(deadline, Cancel()); !ok) return ok.error();
  return session_.get();
}

}  // namespace dlock::zookeeper
