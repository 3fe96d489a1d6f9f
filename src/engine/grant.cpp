#include "engine/grant.hpp"

#include <array>

namespace dlock {
namespace {

template <class Number>
std::string text_of(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "";
}

}  // namespace

// DLOCK_KEYS, DLOCK_TOKENS and DLOCK_FENCES have a line for each grant.
std::vector<std::pair<std::string, std::string>> grant_variables(std::span<const Grant> grants) {
  std::array<std::string, 3> lines;
  for (const Grant& grant : grants) {
    const std::array values{grant.key, grant.token, text_of(grant.fence)};
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines.at(i) += (&grant == &grants.front() ? "" : "\n") + values.at(i);
    }
  }
  const Grant& first = grants.front();
  return {{"DLOCK_KEY", first.key},
          {"DLOCK_KEYS", lines[0]},
          {"DLOCK_TOKEN", first.token},
          {"DLOCK_TOKENS", lines[1]},
          {"DLOCK_FENCE", text_of(first.fence)},
          {"DLOCK_FENCES", lines[2]},
          {"DLOCK_SLOT", text_of(first.slot)}};
}

}  // namespace dlock
