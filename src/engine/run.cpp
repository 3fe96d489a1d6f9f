#include "engine/run.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/front.hpp"
#include "engine/process_tree.hpp"
#include "util/log.hpp"

namespace dlock {
namespace {

int cannot_start(const char* what) {
  util::log(util::Level::error, std::string(what) + ": " + strerror(errno));
  return exit_status::kInternal;
}

}  // namespace

int run(const BackendEntry& entry, const Target& target, const RunSpec& spec) {
  const Deadline started = Clock::now();
  Inherited inherited = Inherited::note();
  signal(SIGCHLD, SIG_DFL);  // were it ignored, nobody could be waited for
  const auto status_file = StatusFile::prepare(spec.status_file);
  if (!status_file) {
    util::log(util::Level::error, status_file.error().message);
    return exit_status::kUsage;
  }
  become_subreaper();
  ProcessTree tree;
  if (!tree.ready()) return cannot_start("cannot reserve file descriptors");
  auto link = make_link();
  if (!link) return cannot_start("socketpair");
  const RunContext context{.entry = entry,
                           .target = target,
                           .spec = spec,
                           .inherited = inherited,
                           .status_file = status_file.value(),
                           .page = *link->page,
                           .tree = tree,
                           .front = getpid(),
                           .started = started};
  const pid_t supervisor = fork();
  if (supervisor < 0) return cannot_start("fork");
  if (supervisor == 0) {
    link->front.reset();
    supervise(context, SupervisorEnd(std::move(link->supervisor)));
  }
  link->supervisor.reset();
  inherited.drop();
  return attend(context, FrontEnd(std::move(link->front)), supervisor);
}

}  // namespace dlock
