#include "cli/print_grants.hpp"

#include <cstdint>

#include "cli/print_json.hpp"
#include "util/host.hpp"

namespace dlock::cli {
namespace {

Object object_of(const Grant& grant) {
  const bool expires = grant.valid_until != kNever;
  return Object{{{"key", grant.key},
                 {"token", grant.token},
                 {"fence", grant.fence ? Cell(*grant.fence) : Cell()},
                 {"slot", grant.slot ? Cell(std::uint64_t{*grant.slot}) : Cell()},
                 {"expires", expires ? Cell(util::utc_in(remaining(grant.valid_until))) : Cell()}}};
}

}  // namespace

std::string print_tokens(std::span<const Grant> grants) {
  std::string out;
  for (const Grant& grant : grants) out += grant.token + '\n';
  return out;
}

std::string print_grants_json(std::span<const Grant> grants) {
  std::string out;
  for (const Grant& grant : grants) out += print_json_line(object_of(grant));
  return out;
}

}  // namespace dlock::cli
