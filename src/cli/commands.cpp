#include "cli/commands.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "cli/cmd_acquire.hpp"
#include "cli/cmd_backends.hpp"
#include "cli/cmd_complete.hpp"
#include "cli/cmd_force_release.hpp"
#include "cli/cmd_generate.hpp"
#include "cli/cmd_help.hpp"
#include "cli/cmd_id.hpp"
#include "cli/cmd_list.hpp"
#include "cli/cmd_once.hpp"
#include "cli/cmd_release.hpp"
#include "cli/cmd_renew.hpp"
#include "cli/cmd_run.hpp"
#include "cli/cmd_show.hpp"
#include "cli/cmd_version.hpp"

namespace dlock::cli {
namespace {

constexpr std::array kCommands{
    Command{
        .id = kRun,
        .name = "run",
        .synopsis = "[OPTION]... --key KEY -- COMMAND [ARG]...",
        .brief = "run a command while holding a lock",
        .text =
            "Takes the lock KEY, runs COMMAND while holding it, and gives the lock up when COMMAND "
            "has ended. If somebody else holds the lock, dlock waits: for ever, unless --wait or "
            "--nonblock says otherwise.\n"
            "\n"
            "While COMMAND runs, dlock keeps the lock renewed. If the lock is lost all the same, "
            "because the network or the lock service failed for too long, dlock ends COMMAND and "
            "everything that COMMAND has started before anybody else can get the lock. If dlock "
            "itself is killed, it leaves nothing running (the man page names exceptions).\n"
            "\n"
            "COMMAND gets its arguments byte by byte: there is no shell in between, unless you say "
            "sh -c. It finds the name of the lock in $DLOCK_KEY, the id of its grant in "
            "$DLOCK_TOKEN and the fencing token, a number that grows with each grant, in "
            "$DLOCK_FENCE; with several locks, a line for each in $DLOCK_KEYS, $DLOCK_TOKENS and "
            "$DLOCK_FENCES.\n"
            "\n"
            "If COMMAND itself uses dlock run with the same KEY, that nested run borrows the lock: "
            "it starts its command at once and releases nothing. The lock is kept until both have "
            "ended.",
        .wraps = true,
        .execute = cmd_run},
    Command{
        .id = kOnce,
        .name = "once",
        .synopsis = "[OPTION]... -k KEY --remember T|--every P -- COMMAND [ARG]...",
        .brief = "run a command once for all machines that share a backend",
        .text =
            "Runs COMMAND under the lock KEY, as dlock run does. If COMMAND exits with status 0, "
            "the backend remembers that the job KEY is done, for as long as --remember says, or "
            "for one hour, day or week (--every). Later runs of dlock once with the same KEY do "
            "not run COMMAND: they say when and by whom it was done, and exit with status 0. The "
            "machines must share a backend: the default one, file, is for this machine only.\n"
            "\n"
            "If another dlock once runs COMMAND at this time, this one waits for it, unless --wait "
            "or --nonblock says otherwise. If that COMMAND fails, is killed, loses the lock or is "
            "ended by --max-hold, the job is not done, and the next waiter runs COMMAND.\n"
            "\n"
            "A COMMAND that is killed after it has had its effect is run again. It can store "
            "$DLOCK_ONCE, which is KEY, or KEY@PERIOD with --every, as a unique key in its own "
            "database. See DOING A JOB ONCE in the man page.\n"
            "\n"
            "The lock is exclusive, and it must not be held by a dlock run around this one. With "
            "--reset there is no COMMAND. Exit status: 0, or that of --done-exit-code, if the job "
            "was done before; 69 also if COMMAND succeeded and the backend could not remember it; "
            "128+N also if dlock passed signal N on to COMMAND, which then exited with 0; "
            "otherwise as that of dlock run.",
        .wraps = true,
        .alone = "reset",
        .execute = cmd_once},
    Command{
        .id = kAcquire,
        .name = "acquire",
        .synopsis = "[OPTION]... --key KEY --ttl DURATION|--while PID",
        .brief = "take a lock and keep it, for a script",
        .text =
            "Takes the lock KEY as dlock run does, prints a token, which dlock renew and dlock "
            "release need, and exits. The lock stays held. It is for scripts and CI jobs that "
            "cannot be wrapped by dlock run. "
            "Prefer dlock run where you can: it promises more. See FOR SCRIPTS in the man page.\n"
            "\n"
            "With --ttl, the lock expires after DURATION unless dlock renew renews it. dlock "
            "release gives it up before that, also from another process or host. If a script "
            "needs longer than DURATION, nothing ends it before another holder gets the lock. "
            "Backends whose locks end with a process, a connection or a session need --while "
            "(\"dlock backends\": ENDS ON is not ttl).\n"
            "\n"
            "With --while, dlock keeps the lock renewed until the process PID has ended or dlock "
            "release is called. If the lock is lost, dlock ends PID and its descendants.\n"
            "\n"
            "Standard output has the token, a line for each KEY. With --export, it has statements "
            "for a shell to evaluate; with --json, an object for each KEY. If these cannot be "
            "written, dlock releases the lock and exits with status 1. Exit status: 0 if the lock "
            "is held, 75 if it was not acquired, otherwise see EXIT STATUS.",
        .execute = cmd_acquire},
    Command{.id = kRenew,
            .name = "renew",
            .synopsis = "[OPTION]... --key KEY [--ttl DURATION]",
            .brief = "extend a lock that acquire --ttl has taken",
            .text =
                "Extends the lock KEY that dlock acquire --ttl has taken: it now expires after "
                "DURATION, by default that of acquire, counted from now. The token "
                "comes from --token-file, or from the environment that acquire --export has set.\n"
                "\n"
                "Exit status: 0 if the lock is renewed; 79 if it is lost, because it has expired "
                "or was broken; 69 if the backend did not answer, so that the lock may be held "
                "still; 1 if the token is not one of acquire --ttl. The message says who "
                "holds the lock now. A lock that has expired is never taken again. With several "
                "keys, all are tried, and the largest status counts.",
            .execute = cmd_renew},
    Command{.id = kRelease,
            .name = "release",
            .synopsis = "[OPTION]... --key KEY",
            .brief = "give up a lock that acquire has taken",
            .text =
                "Releases the lock KEY that dlock acquire has taken; the next waiter gets it. The "
                "token comes from --token-file, or from the environment that acquire "
                "--export has set. It can be called from another process, and "
                "from another host if the backend can be reached from there.\n"
                "\n"
                "Exit status: 0 if the lock was released; 1 if this token does not hold it any "
                "more, or if the token is one of dlock run. The message says who holds the lock "
                "now. With several keys, all are tried, and the largest status counts.",
            .execute = cmd_release},
    Command{.id = kList,
            .name = "list",
            .synopsis = "[OPTION]... [PREFIX]",
            .brief = "list the locks that are held",
            .text =
                "Prints a line for each holder of each lock in the backend whose name begins with "
                "PREFIX; without PREFIX, of all locks. Locks that other programs took under the "
                "names of dlock's are among them. Listing never blocks a holder or a waiter.",
            .operands = "PREFIX",
            .execute = cmd_list},
    Command{.id = kShow,
            .name = "show",
            .synopsis = "[OPTION]... KEY",
            .brief = "show who holds a lock and who waits for it",
            .text =
                "Prints who holds the lock KEY, since when, until when and with which fencing "
                "token, and who waits for it, in order. Exits with status 0 if the lock is held, "
                "and with 1 if it is free.",
            .operands = "KEY",
            .fewest_operands = 1,
            .execute = cmd_show},
    Command{
        .id = kForceRelease,
        .name = "force-release",
        .synopsis = "[OPTION]... KEY",
        .brief = "break a lock: take it from its holder",
        .text =
            "Shows who holds the lock KEY and, if the answer is \"yes\", takes the lock away. "
            "The holder is told by whom and why (--reason), ends its command within a second or "
            "so, and exits with status 79. Whoever waits gets the lock at once, perhaps before "
            "that command has ended; with the backend file only when it has ended. A holder that "
            "got the lock after the question was asked keeps it.\n"
            "\n"
            "Exits with status 0 if a grant was broken, and with 1 if there was none to break. A "
            "lock that another program took is taken from it, too, where it can be told apart from "
            "the next one; that program is not told. The backend file cannot do that.",
        .operands = "KEY",
        .fewest_operands = 1,
        .execute = cmd_force_release},
    Command{
        .id = kId,
        .name = "id",
        .synopsis = "[OPTION]... --name NAME|--snowflake",
        .brief = "print numbers that the backend gives once",
        .text =
            "With --name, prints the next number of the counter NAME. Counters begin with 1. No "
            "number comes twice from the same backend, and later numbers are larger. A number "
            "that was taken and could not be printed is missing for ever.\n"
            "\n"
            "With --snowflake, prints a 64-bit id that is made of the time, a worker number and a "
            "counter. No two are equal. Those of one call grow; those of later calls grow only "
            "roughly, with the time.\n"
            "\n"
            "The numbers are unique among all that use the same backend. The default one, "
            "file, counts for each user of each host alone, or for each directory that is named. "
            "redlock has no counters. An id prints as a decimal number on a line of its own. See "
            "NUMBERS in the man page.",
        .execute = cmd_id},
    Command{
        .id = kBackends,
        .name = "backends",
        .synopsis = "[--json] [--schema NAME [--prefix TEXT]]",
        .brief = "list the backends and what each can do",
        .text =
            "Prints a table of all backends: whether this dlock was built with it, which "
            "kinds of locks it has, and what becomes of a lock whose holder dies. With --schema "
            "instead the statements that make the tables which a backend needs.",
        .execute = cmd_backends},
    Command{.id = kHelp,
            .name = "help",
            .synopsis = "[COMMAND]",
            .brief = "show help, in full if a command is named",
            .text = "Without COMMAND, prints an overview. With it, explains the command and each "
                    "of its options; COMMAND --help prints a shorter form of the same.",
            .operands = "COMMAND",
            .execute = cmd_help},
    Command{.id = kVersion,
            .name = "version",
            .synopsis = "",
            .brief = "show the version and the backends that are built in",
            .text = "Prints the version of dlock on one line and the backends that it was built "
                    "with on the next.",
            .execute = cmd_version},
    Command{.id = kGenerate,
            .name = "generate",
            .synopsis = "man|bash|zsh|fish",
            .brief = "write the man page or a completion script",
            .text = "Prints what stands in man/ and completions/ of the source tree.",
            .operands = "man|bash|zsh|fish",
            .fewest_operands = 1,
            .hidden = true,
            .execute = cmd_generate},
    Command{.id = kComplete,
            .name = "complete",
            .synopsis = "backends",
            .brief = "tell the shell what may stand somewhere",
            .text = "Prints what may follow --backend, one per line, each with a tab and a "
                    "description.",
            .operands = "backends",
            .fewest_operands = 1,
            .hidden = true,
            .execute = cmd_complete},
};

}  // namespace

std::size_t Command::most_operands() const {
  if (operands.empty()) return 0;
  return 1 + static_cast<std::size_t>(std::count(operands.begin(), operands.end(), ' '));
}

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(),
                                   [&](const Command& command) { return command.name == name; });
  return found == kCommands.end() ? nullptr : found;
}

std::string command_names() {
  std::string out;
  for (const Command& command : kCommands) {
    if (command.hidden) continue;
    out += (out.empty() ? "" : ", ") + std::string(command.name);
  }
  return out;
}

}  // namespace dlock::cli
