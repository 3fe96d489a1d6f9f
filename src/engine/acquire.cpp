#include "engine/acquire.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/processes.hpp"
#include "util/log.hpp"

namespace dlock {
namespace {

std::vector<Grant> grants_on(const SharedPage& page, const AcquireSpec& spec) {
  std::vector<Grant> out;
  for (std::size_t i = 0; i < spec.run.keys.size(); ++i) {
    const GrantOnPage& on_page = page.grants.at(i);
    Grant grant{.key = spec.run.keys[i], .token = on_page.token.data()};
    if (on_page.fence != 0) grant.fence = on_page.fence;
    if (on_page.slot != 0) grant.slot = on_page.slot;
    grant.valid_until = spec.keep_while ? kNever : page.leases.at(i).get();
    out.push_back(std::move(grant));
  }
  return out;
}

}  // namespace

int acquire(const BackendEntry& entry, const Target& target, const AcquireSpec& spec,
            const std::function<bool(std::span<const Grant>)>& print) {
  const Deadline started = Clock::now();
  Inherited inherited = Inherited::note();
  util::log_never_blocks();  // after note(): its descriptor is not inherited
  std::optional<Script> script;
  if (spec.keep_while) {
    auto found = Script::find(*spec.keep_while);
    if (!found) {
      util::log(util::Level::error, found.error().message);
      return exit_status::kUsage;
    }
    script = std::move(*found);
  }
  Owner owner;
  owner.kind = Owner::Kind::acquire;
  if (spec.keep_while) {
    owner.pid = *spec.keep_while;
  } else {
    owner.lease = spec.run.ttl;
  }
  StatusFile no_status_file;
  const int script_ended_fd = script ? script->fd() : -1;
  return run_pair({.entry = entry,
                   .target = target,
                   .spec = spec.run,
                   .status_file = no_status_file,
                   .inherited = inherited,
                   .owner = std::move(owner),
                   .started = started,
                   .script_ended_fd = script_ended_fd,
                   .hand_out = [&](const SharedPage& page) { return print(grants_on(page, spec)); },
                   .supervise =
                       [&](const RunContext& context, SupervisorEnd link) {
                         supervise_script(context, std::move(link), std::move(script));
                       }});
}

}  // namespace dlock
