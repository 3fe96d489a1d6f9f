#include "backends/mysql/kill.hpp"

#include "backends/mysql/statements.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kNoSuchThread = 1094;
constexpr unsigned kNotOwner = 1095;
constexpr unsigned kNoRight = 1227;

}  // namespace

Result<bool> end_session(Connection& connection, std::uint64_t other, Deadline deadline,
                         Cancel cancel) {
  if (other == 0) return true;
  const Reply reply = connection.ask("KILL " + std::to_string(other), deadline, cancel);
  if (reply.ok() || reply.code == kNoSuchThread) return true;
  if (reply.code == kNotOwner || reply.code == kNoRight) return false;
  return *reply.error;
}

Result<void> end_sessions_of(Connection& connection, std::string_view owner, Deadline deadline,
                             Cancel cancel) {
  const Reply sessions = connection.ask(sessions_of(owner), deadline, cancel);
  if (!sessions.ok()) return *sessions.error;
  const Answer& found = sessions.answers.back();
  for (std::size_t i = 0; !found.rows.empty() && i < found.rows.front().size(); ++i) {
    const std::uint64_t session = number(found.rows.front(), i);
    if (session == connection.id()) continue;
    if (auto ended = end_session(connection, session, deadline, cancel); !ended) {
      return ended.error();
    }
  }
  return {};
}

}  // namespace dlock::mysql
