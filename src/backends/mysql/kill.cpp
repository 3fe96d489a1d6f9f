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

Result<std::string> end_session_of(Connection& connection, const std::string& mark,
                                   Deadline deadline, Cancel cancel) {
  const Reply found =
      connection.ask("SELECT " + marks_on(connection).session(mark), deadline, cancel);
  if (!found.ok()) return *found.error;
  const std::uint64_t session = number_in(found.answers.back());
  if (session == 0 || session == connection.id()) return std::string();
  const Reply list = connection.ask("SHOW PROCESSLIST", deadline, cancel);
  const std::string waits_for = list.ok() ? what_holds_up(list.answers.back(), session) : "";
  if (auto ended = end_session(connection, session, deadline, cancel); !ended) return ended.error();
  return waits_for;
}

}  // namespace dlock::mysql
