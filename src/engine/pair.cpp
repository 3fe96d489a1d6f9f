#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/processes.hpp"
#include "engine/run_events.hpp"
#include "process/proc.hpp"
#include "process/process_tree.hpp"
#include "util/log.hpp"

namespace dlock {
namespace {

int cannot_start(const char* what) {
  util::log(util::Level::error, std::string(what) + ": " + strerror(errno));
  return exit_status::kInternal;
}

}  // namespace

int run_pair(const PairSpec& pair) {
  const auto event_log = open_event_log(pair);
  if (!event_log) {
    util::log(util::Level::error, event_log.error().message);
    return exit_status::kUsage;
  }
  if (!proc::is_ours()) {
    util::log(util::Level::error,
              "/proc is not mounted, or is that of another pid namespace: dlock could not end what "
              "it starts");
    return exit_status::kInternal;
  }
  become_subreaper();
  ProcessTree tree;
  if (!tree.ready()) return cannot_start("cannot reserve file descriptors");
  auto link = make_link();
  if (!link) return cannot_start("socketpair");
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return cannot_start("pipe");
  Fd life_of_supervisor(pipe_ends[0]);
  Fd held_by_supervisor(pipe_ends[1]);
  const RunContext context{pair,     *link->page,        tree,
                           getpid(), held_by_supervisor, event_log.value()};
  const pid_t supervisor = fork();
  if (supervisor < 0) {
    const int status = cannot_start("fork");
    log_end(context, {.name = "error", .exit_status = status, .reason = "cannot start a process"});
    return status;
  }
  if (supervisor == 0) {
    util::log_forget();
    link->launcher.reset();
    life_of_supervisor.reset();
    pair.supervise(context, SupervisorEnd(std::move(link->supervisor)));
    _exit(exit_status::kInternal);
  }
  link->supervisor.reset();
  held_by_supervisor.reset();
  wake_at_end_of(life_of_supervisor.get());
  if (!pair.hand_out) pair.inherited.drop();
  return attend(context, LauncherEnd(std::move(link->launcher)), supervisor, life_of_supervisor);
}

}  // namespace dlock
