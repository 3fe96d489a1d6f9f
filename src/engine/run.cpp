#include "engine/run.hpp"

#include <unistd.h>

#include "engine/processes.hpp"
#include "util/log.hpp"

namespace dlock {

int run(const BackendEntry& entry, const Target& target, const RunSpec& spec) {
  const Deadline started = Clock::now();
  Inherited inherited = Inherited::note();
  util::log_never_blocks();  // after note(): its descriptor is not inherited
  auto status_file = StatusFile::prepare(spec.status_file);
  if (!status_file) {
    util::log(util::Level::error, status_file.error().message);
    return exit_status::kUsage;
  }
  Owner owner;
  owner.pid = getpid();
  if (spec.once) owner.kind = Owner::Kind::once;
  return run_pair({.entry = entry,
                   .target = target,
                   .spec = spec,
                   .status_file = status_file.value(),
                   .inherited = inherited,
                   .owner = std::move(owner),
                   .started = started,
                   .supervise = supervise});
}

}  // namespace dlock
