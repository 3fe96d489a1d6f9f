#include "backends/mysql/kill.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kNoSuchThread = 1094;
constexpr unsigned kNotOwner = 1095;
constexpr unsigned kNoRight = 1227;

}  // namespace

Result<bool> end_session(Connection& connection, std::uint64_t other, Deadline deadline) {
  if (other == 0) return true;
  const Reply reply = connection.ask("KILL " + std::to_string(other), deadline, Cancel());
  if (reply.ok() || reply.code == kNoSuchThread) return true;
  if (reply.code == kNotOwner || reply.code == kNoRight) return false;
  return *reply.error;
}

}  // namespace dlock::mysql
