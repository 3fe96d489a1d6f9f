#include "backends/sql/conversation.hpp"

#include <algorithm>
#include <utility>

#include "core/patience.hpp"

namespace dlock::sql {

// A server that has no connection left may have one in a moment.
Result<Session*> Conversation::session(Deadline deadline) {
  if (session_ != nullptr) return session_;
  while (!own_ || own_->broken()) {
    own_.reset();  // it may have the last connection that the server can spare
    auto opened = database_->open(deadline, Cancel());
    if (opened) {
      own_ = std::move(*opened);
    } else if (!opened.error().is_full || !pause_briefly(deadline, Cancel())) {
      return opened.error();
    }
  }
  return own_.get();
}

Deadline Conversation::until(Deadline deadline) const {
  return std::min(deadline, after(Clock::now(), database_->connect_timeout()));
}

Result<void> Conversation::connect(Deadline deadline) {
  const auto session = this->session(until(deadline));
  return session ? Result<void>() : session.error();
}

Result<Reply> Conversation::ask(const std::string& text, Deadline deadline) {
  deadline = until(deadline);
  bool is_used = own_ && !own_->broken();
  for (;;) {
    const auto session = this->session(deadline);
    if (!session) return session.error();
    Reply reply = session.value()->insist(text, deadline, Cancel());
    if (reply.ok() || reply.trouble == Trouble::no_table) return reply;
    // It may have been closed while it was not used.
    const bool was_closed = std::exchange(is_used, false) && own_->broken();
    if (was_closed && Clock::now() < deadline) continue;
    const bool passes = reply.trouble == Trouble::passing && session_ == nullptr;
    if (!passes || !pause_briefly(deadline, Cancel())) return *reply.error;
  }
}

Result<Reply> Conversation::ask_with_tables(const std::string& text, Deadline deadline) {
  for (bool again = false;; again = true) {
    auto reply = ask(text, deadline);
    if (!reply || reply.value().ok()) return reply;
    if (again) return *reply.value().error;
    const auto session = this->session(deadline);
    if (!session) return session.error();
    auto made = database_->create_tables(*session.value(), deadline, Cancel());
    if (!made) return made.error();
  }
}

Result<void> Conversation::check_records(Deadline deadline) {
  const auto session = this->session(deadline);
  if (!session) return session.error();
  return database_->check_tables(Database::Part::records, *session.value(), deadline, Cancel());
}

}  // namespace dlock::sql
