#include "cli/commands.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "cli/cmd.hpp"

namespace dlock::cli {
namespace {

constexpr std::array kCommands{
    Command{.id = kRun,
            .name = "run",
            .synopsis = "[OPTION]... -k KEY -- COMMAND [ARG]...",
            .brief = "hold a lock while a command runs",
            .heading = "Run a command",
            .text = "Waits until the lock KEY is free, runs COMMAND while holding it, and releases "
                    "it when COMMAND ends. The exit status is that of COMMAND.",
            .examples = R"(
  dlock run -k sync -- ./sync-all               wait until the lock is free
  dlock run -k sync -q -n -E 0 -- ./sync-all    skip if it is held, for cron
  dlock run -b prod -k sync -q -n -E 0 --min-hold 4m -- ./sync-all
                                                for cron on several machines
  dlock run -b prod -k deploy -w 20m --label "$CI_JOB_URL" -- ./deploy.sh
  dlock run -b redis://db1/0 -k report -- ./report.sh
  dlock run -k gpu --slots 4 -- ./train.sh      up to four at once
)",
            .ending = R"(
COMMAND finds in its environment
  DLOCK_KEY     the name of the lock
  DLOCK_FENCE   the fencing number: it grows with each holder
  DLOCK_SLOT    with --slots: a number from 1 to N that no other holder has
  DLOCK_TOKEN   the lock id (secret: whoever has it can release the lock)

Exit status
  COMMAND's, or 128+N if signal N ended it
  75  not acquired: the lock is held     79   lock lost; COMMAND was ended
  69  the server does not answer         124  --max-hold ended COMMAND
  77  the server refused access          126  COMMAND is not executable
  64  wrong command line                 127  COMMAND was not found
  78  wrong config file                  70   internal error
)",
            .wraps = true,
            .execute = cmd_run},
    Command{.id = kOnce,
            .name = "once",
            .synopsis = "[OPTION]... -k KEY --every P|--remember T -- COMMAND [ARG]...",
            .brief = "run a command once per period, on one machine of several",
            .text = "Runs COMMAND as dlock run does, unless another machine has done so in this "
                    "period. If COMMAND fails, the next dlock once runs it again: one that waits, "
                    "so let the others wait (-w). The machines must share a backend: without -b, "
                    "each machine has its own.",
            .examples = R"(
  dlock once -b prod -w 2h --every 1d -k import -- ./import.sh
  dlock once -b prod --remember 30d -k import-2026-11 -- ./import.sh
  dlock list -b prod --done                     jobs that are done
  dlock once -b prod --reset -k import-2026-11  forget that it is done
)",
            .ending = R"(
COMMAND finds in its environment, beside what dlock run sets,
  DLOCK_ONCE    KEY, or KEY@PERIOD with --every: the name of this job

Exit status
  0 if the job was done before, else COMMAND's, or 128+N if signal N ended it.
  69: the server does not answer, or could not store that the job is done.
  The others are those of dlock run.
)",
            .wraps = true,
            .alone = "reset",
            .execute = cmd_once},
    Command{.id = kList,
            .name = "list",
            .synopsis = "[OPTION]... [KEY-PREFIX]...",
            .brief = "list the locks that are held",
            .heading = "See and repair",
            .text =
                "Prints a line for each holder of each lock whose key begins with a KEY-PREFIX, "
                "or of all locks.",
            .examples = R"(
  dlock list -b prod
  dlock list -b prod --older-than 2h            jobs that may hang
  dlock list -b prod -o key,host,pid nightly/   these columns, of these keys
)",
            .operands = "KEY-PREFIX...",
            .execute = cmd_list},
    Command{.id = kShow,
            .name = "show",
            .synopsis = "[OPTION]... KEY",
            .brief = "show the holder of a lock, and who waits for it",
            .text = "Prints who holds the lock KEY, on which machine, since when, with which "
                    "command and fencing number, and who waits for it.",
            .examples = R"(
  dlock show -b prod nightly-report
)",
            .ending = R"(
Exit status
  0 if the lock is held, 1 if it is free; the others are those of dlock run.
)",
            .operands = "KEY",
            .fewest_operands = 1,
            .execute = cmd_show},
    Command{.id = kWatch,
            .name = "watch",
            .synopsis = "[OPTION]... [KEY-PREFIX]...",
            .brief = "keep the list current on the screen",
            .text = "Looks at the locks again and again, and shows the table of dlock list, until "
                    "you press q. Not on a terminal: prints a line for each change.",
            .examples = R"(
  dlock watch -b prod nightly/
  dlock watch --all                             each profile of the config file
  dlock watch -b prod --json | ./alert          an object for each change
  timeout 60 dlock watch --exit-when free job   wait, but do not acquire
)",
            .operands = "KEY-PREFIX...",
            .execute = cmd_watch},
    Command{.id = kForceRelease,
            .name = "force-release",
            .synopsis = "[OPTION]... KEY",
            .brief = "take a lock away from its holder",
            .text = "Shows the holder of the lock KEY, asks, and takes the lock away. The holder's "
                    "dlock ends its command within about a second and exits with 79. The next "
                    "waiter acquires the lock at once, perhaps before that command has ended; with "
                    "the backend file, when it has ended. To let it end first, kill the pid that "
                    "dlock show prints, on its machine.",
            .examples = R"(
  dlock force-release -b prod nightly-report --reason "hangs"
  dlock force-release -b prod nightly-report --yes --older-than 2h
)",
            .ending = R"(
Exit status
  0 if the lock was taken away; 1 if not: it is free, another holder has it by
  now, or the answer was not "yes". The others are those of dlock run.
)",
            .operands = "KEY",
            .fewest_operands = 1,
            .execute = cmd_force_release},
    Command{.id = kDoctor,
            .name = "doctor",
            .synopsis = "[OPTION]...",
            .brief = "check the configuration and the server",
            .text = "Prints which settings are in force and where they come from, looks at each "
                    "server, tries a lock that nobody else uses, and says what can lose a lock, "
                    "why, and what to do. It changes no setting and leaves nothing behind.",
            .examples = R"(
  dlock doctor -b prod
  dlock doctor --all --strict                   each backend of the config file
  dlock run -k x -- true || dlock doctor        in a cron job: its environment
)",
            .ending = R"(
Exit status
  0   nothing worse than "warn"          1   a "FAIL", or with --strict a "warn"
  69  the server does not answer         77  the server refused access
  78  wrong config file
)",
            .execute = cmd_doctor},
    Command{.id = kAcquire,
            .name = "acquire",
            .synopsis = "[OPTION]... -k KEY --ttl DURATION|--while PID",
            .brief = "acquire a lock and exit; the lock stays held",
            .heading = "In scripts that cannot be wrapped",
            .text = "Acquires the lock KEY, prints its id, and exits. The lock stays held, until "
                    "dlock release, until the process of --while ends, or until --ttl is over and "
                    "dlock renew was not called. Use dlock run where you can: nothing ends a "
                    "script of --ttl that has lost its lock.",
            .examples = R"(
  lock=$(dlock acquire --export -k deploy --while $$) || exit
  eval "$lock"                                  sets DLOCK_KEY and DLOCK_TOKEN

  (umask 077; dlock acquire -b prod -k deploy --ttl 10m >id)
  dlock renew -b prod -k deploy --token-file id
  dlock release -b prod -k deploy --token-file id
)",
            .ending = R"(
Exit status
  0   the lock is held                   75  not acquired: another holder has it
  69  the server does not answer         77  the server refused access
  1   the id could not be printed, and the lock was released
)",
            .execute = cmd_acquire},
    Command{.id = kRenew,
            .name = "renew",
            .synopsis = "[OPTION]... -k KEY [--ttl DURATION]",
            .brief = "extend a lock of acquire --ttl",
            .text = "Extends the lock KEY: it now expires one TTL after this moment. The lock id "
                    "comes from --token-file, or from the variables that acquire --export has set.",
            .examples = R"(
  dlock renew -b prod -k deploy --token-file id
)",
            .ending = R"(
Exit status
  0   the lock is renewed                79  lost: it expired or was broken
  69  the server does not answer         1   the id is not one of acquire --ttl
)",
            .execute = cmd_renew},
    Command{.id = kRelease,
            .name = "release",
            .synopsis = "[OPTION]... -k KEY",
            .brief = "release a lock of acquire",
            .text = "Releases the lock KEY; the next waiter acquires it. The lock id comes from "
                    "--token-file, or from the variables that acquire --export has set.",
            .examples = R"(
  dlock release -b prod -k deploy --token-file id
)",
            .ending = R"(
Exit status
  0   the lock is released               1   this id does not hold it any more
  69  the server does not answer
)",
            .execute = cmd_release},
    Command{.id = kBackends,
            .name = "backends",
            .synopsis = "[--json] [--schema NAME [--prefix TEXT]]",
            .brief = "list the backends and their features",
            .heading = "More",
            .text = "Prints the backends, which kinds of locks each has, and when the lock of a "
                    "dead holder becomes free. With --schema, prints the statements that create "
                    "the tables which a backend needs; they do nothing if the tables exist.",
            .examples = R"(
  dlock backends
  dlock backends --schema mysql | mariadb app
)",
            .execute = cmd_backends},
    Command{.id = kId,
            .name = "id",
            .synopsis = "[OPTION]... --name NAME|--snowflake",
            .brief = "print unique, growing numbers",
            .text = "Prints numbers that no other dlock id gets from the same backend.",
            .examples = R"(
  dlock id -b prod --name invoice               1, then 2, then 3
  dlock id -b prod --snowflake --count 10
)",
            .execute = cmd_id},
    Command{.id = kHelp,
            .name = "help",
            .synopsis = "[COMMAND]",
            .brief = "show the options of a command",
            .text = "Prints an overview, or the options of COMMAND, as COMMAND --help does.",
            .operands = "COMMAND",
            .execute = cmd_help},
    Command{.id = kVersion,
            .name = "version",
            .synopsis = "",
            .brief = "show the version",
            .text = "Prints the version of dlock and the backends that it was built with.",
            .execute = cmd_version},
    Command{.id = kComplete,
            .name = "complete",
            .synopsis = "-- [WORD]...",
            .brief = "answer a shell that completes a command line",
            .operands = "WORD...",
            .hidden = true,
            .execute = cmd_complete},
};

}  // namespace

std::size_t Command::most_operands() const {
  if (operands.empty()) return 0;
  if (operands.ends_with("...")) return SIZE_MAX;
  return 1 + static_cast<std::size_t>(std::count(operands.begin(), operands.end(), ' '));
}

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(),
                                   [&](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : found;
}

}  // namespace dlock::cli
