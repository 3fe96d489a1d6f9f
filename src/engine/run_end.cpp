#include "engine/run_end.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "engine/describe.hpp"
#include "util/log.hpp"
#include "util/process_title.hpp"

namespace dlock {
namespace {

using util::Level;

Outcome not_started(const RunContext& context, const Job& job) {
  const int error = job.start_error();
  const std::string& command = context.spec.argv.front();
  const bool missing = error == ENOENT || error == ENOTDIR;
  Outcome out;
  out.name = "not-started";
  out.exit_status = missing ? exit_status::kNotFound : exit_status::kNotExecutable;
  out.reason = why_not_started(command, error);
  if (!job.started()) {
    out.exit_status = exit_status::kInternal;
    out.reason = "cannot start " + command + ": fork: " + strerror(error);
  }
  return out;
}

}  // namespace

Outcome outcome_of(const RunContext& context, const Job& job, const RunEnd& end) {
  const RunSpec& spec = context.spec;
  const auto make = [](std::string_view name, int exit_status, std::string reason) {
    Outcome out;
    out.name = name;
    out.exit_status = exit_status;
    out.reason = std::move(reason);
    return out;
  };
  if (end.loss) return make("lost", exit_status::kLost, end.loss->error.message);
  if (end.launcher_gone) return make("error", exit_status::kInternal, "dlock itself was killed");
  if (end.refused_by != 0) {
    return make(
        "signalled", exit_status::kSignalBase + end.refused_by,
        "ended by signal " + std::to_string(end.refused_by) + " before the command started");
  }
  if (end.failure) return *end.failure;
  if (job.start_error() != 0) return not_started(context, job);
  if (end.max_hold_over) {
    return make("max-hold", exit_status::kMaxHold, "the command ran for longer than --max-hold");
  }
  if (!job.status()) return make("error", exit_status::kInternal, "the command was not started");
  const int status = *job.status();
  const int asked_by = job.asked_to_end_by();
  if (spec.once && status == 0 && asked_by != 0) {
    return make("signalled", exit_status::kSignalBase + asked_by,
                spec.argv.front() + " exited with 0 after dlock had passed signal " +
                    std::to_string(asked_by) + " on to it; " + keys_in_words(spec.keys) +
                    " does not count as done");
  }
  if (WIFSIGNALED(status)) {
    return make("signalled", exit_status::kSignalBase + WTERMSIG(status),
                "the command died of signal " + std::to_string(WTERMSIG(status)));
  }
  return make("completed", WEXITSTATUS(status), "");
}

void report(const RunContext& context, const Job& job, const RunEnd& end, const Outcome& outcome) {
  const bool looks_done = outcome.name == "signalled" && context.spec.once && job.status() == 0;
  if (outcome.name == "done") {
    util::log(Level::note, outcome.reason);
  } else if (outcome.name == "busy") {
    util::log(Level::warning, outcome.reason);  // -q: the exit status says it
  } else if (end.launcher_gone) {
    util::log(Level::error,
              "dlock (pid " + std::to_string(context.launcher) + ") was killed" +
                  (job.started() ? "; ended " + context.spec.argv.front() : std::string()));
  } else if (outcome.name == "not-started" || outcome.name == "unreachable" ||
             outcome.name == "denied" || outcome.name == "error" || looks_done) {
    util::log(Level::error, outcome.reason);
  }
}

void name_leftovers(const RunContext& context, bool keeps_lock) {
  std::string names;
  for (const Process& process : context.tree.alive()) {
    // A nested run is listed as its launcher, and a keeper ends with its script.
    if (util::may_hold_locks(process.name)) continue;
    if (!names.empty()) names += ", ";
    if (names.size() > 200) {
      names += "...";
      break;
    }
    names += process.name + " (pid " + std::to_string(process.pid) + ')';
  }
  if (names.empty()) return;
  util::log(Level::warning,
            context.spec.argv.front() + " has ended; still running" +
                (keeps_lock ? ": " + names + "; keeping " + keys_in_words(context.spec.keys) +
                                  " until the nested runs of dlock have ended"
                            : " without the lock: " + names) +
                " (see --leftovers)");
}

}  // namespace dlock
