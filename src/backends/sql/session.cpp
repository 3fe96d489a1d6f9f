#include "backends/sql/session.hpp"

#include "util/jitter.hpp"
#include "util/poll.hpp"

namespace dlock::sql {
namespace {

constexpr int kMostTriesToInsist = 20;

Reply failed(Errc code, std::string message) {
  return {.answers = {}, .trouble = Trouble::other, .error = Error{code, std::move(message)}};
}

}  // namespace

Reply Session::ask(const std::string& text, Deadline deadline, Cancel cancel) {
  if (!broken()) {
    if (cancel.requested()) return failed(Errc::cancelled, server() + ": cancelled");
    if (Clock::now() >= deadline) {
      return failed(Errc::unreachable, server() + ": the time for this request is over");
    }
    send(text);
  }
  Reply reply = receive(deadline, cancel);
  if (under_way()) close("dlock gave the connection up: " + reply.error->message);
  return reply;
}

Reply Session::insist(const std::string& text, Deadline deadline, Cancel cancel) {
  for (int tries = 1;; ++tries) {
    Reply reply = ask(text, deadline, cancel);
    if (reply.ok() || broken()) return reply;
    const Reply undone = ask("ROLLBACK", deadline, cancel);
    if (!undone.ok() && !broken()) close();
    if (reply.trouble != Trouble::passing || tries == kMostTriesToInsist) return reply;
    util::wait_readable(cancel.fd(), after(Clock::now(), util::jitter(Millis{tries * 2})));
  }
}

const Answer& last_answer(const Reply& reply) {
  static const Answer kNone;
  return reply.answers.empty() ? kNone : reply.answers.back();
}

}  // namespace dlock::sql
