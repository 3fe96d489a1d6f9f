#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/cmd.hpp"
#include "cli/lock_service.hpp"
#include "cli/print_grants.hpp"
#include "cli/print_text.hpp"
#include "cli/tokens.hpp"
#include "cli/values.hpp"
#include "util/log.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

// A TTL in the environment or the config file is meant for runs.  Without --ttl, the lock keeps the
// TTL of acquire.
std::optional<Millis> take_ttl(const Settings& settings) {
  const Setting* ttl = settings.find("ttl");
  if (ttl == nullptr || ttl->layer != Layer::flag) return std::nullopt;
  return to_duration(*ttl, flag("ttl"));
}

Result<Grant> renew(const Claim& claim, std::optional<Millis> ttl, Backend& backend,
                    const LockService& service) {
  const auto found = find_claimed(backend, claim, service.patience());
  if (!found) return found.error();
  const auto& [lock, holder] = found.value();
  if (!holder.owner.lease) {
    return Error{Errc::busy, util::in_quotes(claim.key) +
                                 " was acquired with --while: dlock renews it until process " +
                                 std::to_string(holder.owner.pid) +
                                 " has ended, so there is nothing to renew"};
  }
  auto lease = backend.resume(lock, holder, ttl.value_or(*holder.owner.lease), service.patience());
  if (!lease) return lease.error();
  if (auto ok = lease.value()->renew(service.patience(), Cancel()); !ok) return ok.error();
  return Grant{.key = claim.key,
               .token = claim.token,
               .fence = holder.fence,
               .slot = holder.slot,
               .valid_until = lease.value()->valid_until()};
}

int report_failure(const Claim& claim, const Error& error, const LockService& service) {
  if (error.code != Errc::lost) return service.report(error);
  util::log(util::Level::error, "lost " + util::in_quotes(claim.key) + ": " + error.message);
  return exit_status::kLost;
}

}  // namespace

int cmd_renew(const Invocation& invocation, std::span<const BackendEntry> backends) {
  const LockService service(invocation, backends);
  const auto claims = take_claims(service.settings(), *invocation.command);
  const auto ttl = take_ttl(service.settings());
  const auto backend = service.open();
  if (!backend) return service.report(backend.error());
  std::vector<Grant> renewed;
  int worst = 0;
  for (const Claim& claim : claims) {
    auto grant = renew(claim, ttl, *backend.value(), service);
    if (grant) {
      util::log(util::Level::detail, "renewed " + util::in_quotes(claim.key));
      renewed.push_back(std::move(*grant));
    } else {
      worst = std::max(worst, report_failure(claim, grant.error(), service));
    }
  }
  if (service.json()) worst = std::max(worst, write_stdout(print_grants_json(renewed)));
  return worst;
}

}  // namespace dlock::cli
