#include <algorithm>
#include <memory>
#include <string>

#include "cli/cmd.hpp"
#include "cli/lock_service.hpp"
#include "cli/tokens.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

using util::in_quotes;
using util::Level;
using util::log;

int outcome(const std::string& key, const Result<void>& released, const LockService& service) {
  if (!released) {
    const Error& error = released.error();
    return error.code == Errc::lost ? no(in_quotes(key) + " was not released: " + error.message)
                                    : service.report(error);
  }
  log(Level::detail, "released " + in_quotes(key));
  return 0;
}

// The process that keeps it for a script finds out, and lets the script go on.
Result<void> take_back(const Claim& claim, Backend& backend, Deadline deadline) {
  const std::string by = this_process_in_words();
  const auto taken = backend.force_release(claim.key, claim.token, {by, true}, deadline);
  if (!taken) return taken.error();
  if (taken.value()) return {};
  return Error{Errc::lost, "this lock id does not hold it any more"};
}

int release(const Claim& claim, Backend& backend, const LockService& service) {
  const auto found = find_claimed(backend, claim, service.patience());
  if (!found) return outcome(claim.key, found.error(), service);
  const auto& [lock, holder] = found.value();
  if (!holder.owner.lease) {
    return outcome(claim.key, take_back(claim, backend, service.patience()), service);
  }
  auto lease = backend.resume(lock, holder, *holder.owner.lease, service.patience());
  if (!lease) return outcome(claim.key, lease.error(), service);
  return outcome(claim.key, lease.value()->release(service.patience(), Cancel()), service);
}

}  // namespace

int cmd_release(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const auto claims = take_claims(service.settings(), *invocation.command);
  int worst = 0;
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  for (const Claim& claim : claims) {
    worst = std::max(worst, release(claim, *backend.value(), service));
  }
  return worst;
}

}  // namespace dlock::cli
