#include "backends/sql/session.hpp"

#include "util/jitter.hpp"
#include "util/poll.hpp"

namespace dlock::sql {
namespace {

constexpr int kMostTriesToInsist = 20;
constexpr Millis kForRollback{1'000};

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
  if (reply.ok()) return reply;
  if (!broken()) {
    send("ROLLBACK");
    if (receive(after(Clock::now(), kForRollback), Cancel()).ok()) return reply;
    close();
  }
  // What could have been done about it, over this session, is to be done over another one.
  if (reply.trouble != Trouble::other) reply.error->code = Errc::unreachable;
  return reply;
}

Reply Session::insist(const std::string& text, Deadline deadline, Cancel cancel) {
  for (int tries = 1;; ++tries) {
    Reply reply = ask(text, deadline, cancel);
    if (reply.trouble != Trouble::passing || broken() || tries == kMostTriesToInsist) return reply;
    util::wait_readable(cancel.fd(), after(Clock::now(), util::jitter(Millis{tries * 2})));
  }
}

Error no_primary(const std::string& server) {
  return {Errc::unreachable, server + ": it is read_only; is it a replica?"};
}

const Answer& last_answer(const Reply& reply) {
  static const Answer kNone;
  return reply.answers.empty() ? kNone : reply.answers.back();
}

}  // namespace dlock::sql
