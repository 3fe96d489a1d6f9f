#include "backends/mysql/kill.hpp"

#include "backends/mysql/pulse.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kNoSuchThread = 1094;
constexpr unsigned kNotOwner = 1095;
constexpr unsigned kNoRight = 1227;

// In words for people.  "": nothing that we know.
std::string what_holds_up(const Answer& sessions, std::uint64_t session) {
  constexpr std::size_t kState = 6;
  for (const Row& row : sessions.rows) {
    if (number(row, 0) != session || row.size() <= kState) continue;
    const std::string state = row[kState].value_or("");
    const auto has = [&](const char* text) { return state.find(text) != std::string::npos; };
    if (has("backup lock") || has("global read lock") || has("commit lock")) {
      return "a backup or FLUSH TABLES WITH READ LOCK blocks all writes on this server";
    }
    if (has("metadata lock")) {
      return "LOCK TABLES or ALTER TABLE blocks dlock's tables on this server";
    }
  }
  return "";
}

}  // namespace

Result<bool> end_session(Connection& connection, std::uint64_t other, Deadline deadline,
                         Cancel cancel) {
  if (other == 0) return true;
  const Reply reply = connection.ask("KILL " + std::to_string(other), deadline, cancel);
  if (reply.ok() || reply.code == kNoSuchThread) return true;
  if (reply.code == kNotOwner || reply.code == kNoRight) return false;
  return *reply.error;
}

Result<std::string> end_sessions_of(Connection& connection, std::string_view owner,
                                    Deadline deadline, Cancel cancel) {
  const Reply sessions = connection.ask(marks_on(connection).sessions_of(owner), deadline, cancel);
  if (!sessions.ok()) return *sessions.error;
  const Answer& found = sessions.answers.back();
  std::string waits_for;
  for (std::size_t i = 0; !found.rows.empty() && i < found.rows.front().size(); ++i) {
    const std::uint64_t session = number(found.rows.front(), i);
    if (session == 0 || session == connection.id()) continue;
    const Reply list = connection.ask("SHOW PROCESSLIST", deadline, cancel);
    if (list.ok()) waits_for = what_holds_up(list.answers.back(), session);
    if (auto ended = end_session(connection, session, deadline, cancel); !ended) {
      return ended.error();
    }
  }
  return waits_for;
}

}  // namespace dlock::mysql
