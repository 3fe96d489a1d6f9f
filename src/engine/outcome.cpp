#include "engine/outcome.hpp"

#include "engine/exit_status.hpp"

namespace dlock {

Outcome not_acquired(const Error& error, int conflict_status) {
  const auto out = [&](std::string_view name, int status) {
    return Outcome{.name = name, .exit_status = status, .reason = error.message};
  };
  switch (error.code) {
    case Errc::busy:
      return out("busy", conflict_status);
    case Errc::unreachable:
    case Errc::lost:
      return out("unreachable", exit_status::kUnreachable);
    case Errc::denied:
      return out("denied", exit_status::kDenied);
    case Errc::conflict:
    case Errc::unsupported:
    case Errc::invalid:
      return out("error", exit_status::kUsage);
    case Errc::cancelled:
      break;
  }
  return out("error", exit_status::kInternal);
}

}  // namespace dlock
