#include "engine/outcome.hpp"

#include "engine/exit_status.hpp"

namespace dlock {

Outcome not_acquired(const Error& error, int conflict_status) {
  Outcome out;
  out.reason = error.message;
  switch (error.code) {
    case Errc::busy:
      out.name = "busy";
      out.exit_status = conflict_status;
      return out;
    case Errc::unreachable:
    case Errc::lost:
      out.name = "unreachable";
      out.exit_status = exit_status::kUnreachable;
      return out;
    case Errc::denied:
      out.name = "denied";
      out.exit_status = exit_status::kDenied;
      return out;
    case Errc::conflict:
    case Errc::unsupported:
    case Errc::invalid:
      out.name = "error";
      out.exit_status = exit_status::kUsage;
      return out;
    case Errc::cancelled:
      break;
  }
  out.name = "error";
  out.exit_status = exit_status::kInternal;
  return out;
}

}  // namespace dlock
