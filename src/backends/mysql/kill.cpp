#include "backends/mysql/kill.hpp"

#include "util/text.hpp"

namespace dlock::mysql {
namespace {

constexpr unsigned kNoSuchThread = 1094;
constexpr unsigned kNotOwner = 1095;
constexpr unsigned kNoRight = 1227;

}  // namespace

std::uint64_t number_in(const Answer& answer) {
  constexpr long long kMost = 1'000'000'000'000'000'000;
  if (answer.rows.size() != 1 || answer.rows.front().size() != 1) return 0;
  const auto& value = answer.rows.front().front();
  if (!value) return 0;
  return static_cast<std::uint64_t>(util::parse_int(*value, 0, kMost).value_or(0));
}

Result<bool> end_session(Connection& connection, std::uint64_t other, Deadline deadline) {
  if (other == 0) return true;
  const Reply reply = connection.ask("KILL " + std::to_string(other), deadline, Cancel());
  if (reply.ok() || reply.code == kNoSuchThread) return true;
  if (reply.code == kNotOwner || reply.code == kNoRight) return false;
  return *reply.error;
}

}  // namespace dlock::mysql
