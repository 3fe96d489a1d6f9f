// The keeper of a script on this machine is asked first.  This needs no server, which may not
// answer.
#include <algorithm>
#include <memory>
#include <string>

#include "cli/cmd.hpp"
#include "cli/lock_service.hpp"
#include "cli/tokens.hpp"
#include "engine/release_door.hpp"
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

// The keeper may wait for the server for the whole deadline, and then still has to reply.
constexpr Millis kKeeperSays{1'000};

std::optional<Result<void>> ask_for(const Claim& claim, Deadline deadline) {
  if (!is_token(claim.token)) return std::nullopt;
  return ask_keeper(claim.key, claim.token, after(deadline, kKeeperSays));
}

// Used if the keeper is on another host or belongs to another user.
Result<void> take_back(const Claim& claim, Backend& backend, Deadline deadline) {
  const auto taken = backend.force_release(
      claim.key, claim.token, std::string(kGivenBack) + this_process_in_words(), deadline);
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
  auto claims = take_claims(service.settings(), *invocation.command);
  int worst = 0;
  std::erase_if(claims, [&](const Claim& claim) {
    const auto answer = ask_for(claim, service.patience());
    if (answer) worst = std::max(worst, outcome(claim.key, *answer, service));
    return answer.has_value();
  });
  if (claims.empty()) return worst;
  const auto backend = service.open();
  if (!backend) return std::max(worst, service.report(backend.error()));
  for (const Claim& claim : claims) {
    worst = std::max(worst, release(claim, *backend.value(), service));
  }
  return worst;
}

}  // namespace dlock::cli
