#include "cli/flags.hpp"

#include <algorithm>
#include <cassert>

#include "cli/unknown_settings.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr unsigned kWithCommand = kRun | kOnce;
constexpr unsigned kWithLock = kWithCommand | kAcquire;
constexpr unsigned kWithToken = kRenew | kRelease;
constexpr unsigned kLooking = kList | kShow;
constexpr unsigned kWithBackend = kWithLock | kWithToken | kLooking | kForceRelease | kId;

constexpr std::int64_t kHoursMs = 3'600'000;

constexpr std::array kFlags{
    Flag{.name = "key",
         .letter = 'k',
         .kind = ValueKind::list,
         .value = "KEY",
         .group = Group::lock,
         .commands = kWithLock | kWithToken,
         .variable = false,
         .config = false,
         .section = "SEVERAL LOCKS",
         .brief = "name of the lock",
         .text =
             "It is 1 to 255 bytes of UTF-8 without control characters. All who use the same name "
             "with the same backend share one lock. Upper and lower case differ in every backend. "
             "Repeated, run and acquire take all these locks or none."},
    Flag{.name = "nonblock",
         .letter = 'n',
         .kind = ValueKind::boolean,
         .group = Group::lock,
         .commands = kWithLock,
         .variable = false,
         .config = false,
         .rival = "wait",
         .brief = "do not wait: give up at once if the lock is held",
         .text = "dlock tries once, and exits with status 75 (run, once: see --conflict-exit-code) "
                 "if the lock is held. The same as --wait 0."},
    Flag{.name = "wait",
         .letter = 'w',
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::lock,
         .commands = kWithLock,
         .rival = "nonblock",
         .fallback = "for ever",
         .brief = "wait for the lock at most this long",
         .text = "If the lock is not acquired within DURATION, dlock exits with status 75 (run, "
                 "once: see --conflict-exit-code), or with 69 if the backend does not answer at "
                 "that time. "
                 "With 0, dlock tries once. See OUTAGES."},
    Flag{
        .name = "ttl",
        .kind = ValueKind::duration,
        .value = "DURATION",
        .group = Group::lock,
        .commands = kWithLock | kRenew,
        .range = {1'000, 24 * kHoursMs, "from 1s to 24h"},
        .fallback = "30s; acquire has none, and renew that of acquire",
        .brief = "let the lock expire this long after its last renewal",
        .text =
            "While the command runs, or the PID of --while, dlock renews the lock at least three "
            "times in DURATION. A short DURATION frees the lock sooner after a machine has died. A "
            "long one survives longer network outages. From 1s to 24h. The file backend ignores "
            "--ttl. acquire without --while, and renew: the lock expires after DURATION unless "
            "dlock renew is called again, and only --ttl on the command line counts."},
    Flag{.name = "shared",
         .kind = ValueKind::boolean,
         .group = Group::lock,
         .commands = kRun | kAcquire,
         .variable = false,
         .config = false,
         .rival = "slots",
         .brief = "share the lock with other --shared holders (a read lock)",
         .text = "Any number of holders can share the lock. A holder without --shared excludes all "
                 "others."},
    Flag{
        .name = "slots",
        .kind = ValueKind::number,
        .value = "N",
        .group = Group::lock,
        .commands = kRun | kAcquire,
        .variable = false,
        .config = false,
        .rival = "shared",
        .range = {1, 1'024, "from 1 to 1024"},
        .brief = "let up to N hold the lock at once (a semaphore)",
        .text =
            "All holders must give the same N, from 1 to 1024. DLOCK_SLOT is the slot that "
            "the command has of the first --key, from 1 to N; no other holder of that key has it."},
    Flag{.name = "label",
         .value = "TEXT",
         .group = Group::lock,
         .commands = kWithLock,
         .brief = "show this text to others while the lock is held",
         .text = "For example the URL of a CI job. At most 1024 bytes without control characters."},
    Flag{.name = "kill-after",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::lock,
         .commands = kWithLock,
         .fallback = "5s, or a quarter of --ttl if that is less",
         .brief = "time from SIGTERM to SIGKILL when dlock ends the command",
         .text = "The command can clean up during this time. When the lock is about to be lost, "
                 "dlock sends SIGTERM this long before the lock ends, so DURATION must be less "
                 "than half of --ttl. Of acquire: with --while only; the command is PID and its "
                 "descendants."},
    Flag{.name = "on-lost",
         .value = "WHAT",
         .group = Group::lock,
         .commands = kWithLock,
         .choices = {"term", "kill", "ignore"},
         .fallback = "term",
         .brief = "what to do when the lock is lost while the command runs",
         .text = "term: send SIGTERM to the command and all that it started, and SIGKILL after "
                 "--kill-after. kill: send SIGKILL at once. ignore: let the command go on without "
                 "the lock, beside the next holder; only for a command that checks its fencing "
                 "token wherever it writes. Of acquire: with --while only."},

    Flag{.name = "conflict-exit-code",
         .letter = 'E',
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::run,
         .commands = kWithCommand,
         .range = {0, 255, "from 0 to 255"},
         .fallback = "75",
         .brief = "exit with N instead of 75 if the lock is held",
         .text = "N is from 0 to 255."},
    Flag{.name = "leftovers",
         .value = "WHAT",
         .group = Group::run,
         .commands = kWithCommand,
         .choices = {"ignore", "wait", "kill"},
         .fallback = "ignore",
         .brief = "what to do with processes that the command leaves behind",
         .text =
             "It applies when the command ends by itself. ignore: leave them running, name them "
             "in a warning, and release the lock. wait: wait until they have ended, then "
             "release the lock. kill: send them SIGTERM, and SIGKILL after --kill-after, then "
             "release the lock."},
    Flag{.name = "max-hold",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::run,
         .commands = kWithCommand,
         .brief = "end the command if it runs longer than this",
         .text = "dlock sends SIGTERM, and SIGKILL after --kill-after, releases the lock, and "
                 "exits with status 124, as timeout(1) does. 0 means no limit."},
    Flag{.name = "min-hold",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::run,
         .commands = kRun,
         .brief = "keep the lock at least this long",
         .text = "If the command ends sooner, dlock exits with the command's status, and leaves "
                 "the lock behind. It is released DURATION after the (last) lock was acquired, "
                 "whatever --ttl is. Until then, list and show mark the command as ended. With "
                 "--nonblock, or with a --wait that is shorter than DURATION, a job that all "
                 "machines start at the same minute runs on only one of them, even if the job is "
                 "quick and the clocks differ a little."},
    Flag{.name = "status-file",
         .value = "FILE",
         .group = Group::run,
         .commands = kWithCommand,
         .variable = false,
         .config = false,
         .completes = Completes::files,
         .section = "STATUS FILE",
         .brief = "write the outcome to FILE as JSON",
         .text = "A script can then tell dlock's own status 75 from that of a command that exits "
                 "with 75. dlock replaces FILE in one step, at the end."},

    Flag{.name = "remember",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::once,
         .commands = kOnce,
         .variable = false,
         .config = false,
         .rival = "every",
         .range = {1'000, 3'650 * 24 * kHoursMs, "from 1s to 3650d"},
         .section = "DOING A JOB ONCE",
         .brief = "remember for this long that the job is done",
         .text = "DURATION is counted from the end of COMMAND, and is from 1s to 3650d. When it is "
                 "over, the next dlock once runs COMMAND again. For a KEY that names one job, as "
                 "import-2026-11-22."},
    Flag{.name = "every",
         .value = "PERIOD",
         .group = Group::once,
         .commands = kOnce,
         .variable = false,
         .config = false,
         .rival = "remember",
         .choices = {"1h", "1d", "1w"},
         .section = "DOING A JOB ONCE",
         .brief = "do the job once in each hour, day or week",
         .text = "Hours, days and weeks are those of UTC, and weeks begin on Monday. dlock takes "
                 "the period from the clock of this machine when it starts, however long it waits "
                 "then. Each period is a job of its own. That it is done is remembered for one "
                 "week longer than the period lasts, for those who have waited since then."},
    Flag{.name = "done-exit-code",
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::once,
         .commands = kOnce,
         .variable = false,
         .config = false,
         .range = {0, 255, "from 0 to 255"},
         .fallback = "0",
         .brief = "exit with N if the job was done before",
         .text = "N is from 0 to 255."},
    Flag{.name = "reset",
         .kind = ValueKind::boolean,
         .group = Group::once,
         .commands = kOnce,
         .variable = false,
         .config = false,
         .section = "DOING A JOB ONCE",
         .brief = "forget that the job is done; without COMMAND",
         .text =
             "With --every, only the present period is forgotten. With --remember, only what is "
             "remembered without a period. With neither, everything that is remembered of KEY. "
             "A COMMAND that runs at this time is remembered all the same. The status is 1 if "
             "there was nothing to forget."},

    Flag{.name = "while",
         .kind = ValueKind::number,
         .value = "PID",
         .group = Group::grant,
         .commands = kAcquire,
         .variable = false,
         .config = false,
         .range = {1, 4'194'304, "from 1 to 4194304"},
         .section = "FOR SCRIPTS",
         .brief = "keep the lock until this process has ended",
         .text = "PID must be an ancestor of dlock that dlock may signal. In a script, it is $$ "
                 "(fish: $fish_pid). Two processes of dlock stay in the background, renew the "
                 "lock, and release it when PID has ended. If the lock is lost, they end PID and "
                 "its descendants: see --on-lost. Instead of --ttl."},
    Flag{.name = "export",
         .value = "SHELL",
         .alone = "sh",
         .group = Group::grant,
         .commands = kAcquire,
         .variable = false,
         .config = false,
         .choices = {"sh", "fish"},
         .section = "FOR SCRIPTS",
         .brief = "print statements that set DLOCK_KEY, DLOCK_TOKEN and so on",
         .text =
             "For a shell to evaluate: lock=$(dlock acquire --export ...) || exit; eval "
             "\"$lock\". They set the variables that the command of dlock run finds. If dlock "
             "fails, it prints a statement that fails with the same status. SHELL is sh, which is "
             "the default and for all shells like it, or fish. Not together with --json."},
    Flag{.name = "token-file",
         .value = "FILE",
         .group = Group::grant,
         .commands = kWithToken,
         .variable = false,
         .config = false,
         .completes = Completes::files,
         .section = "FOR SCRIPTS",
         .brief = "read the token from FILE",
         .text = "FILE has a line for each --key, in the same order. Only the owner of FILE may "
                 "have access to it (chmod 600)."},

    Flag{.name = "output",
         .letter = 'o',
         .kind = ValueKind::list,
         .value = "COLUMNS",
         .group = Group::look,
         .commands = kLooking,
         .variable = false,
         .config = false,
         .rival = "done",
         .section = "LOCKS AS A TABLE AND AS JSON",
         .brief = "print these columns, separated by commas",
         .text = "The table has a line for each holder. With --json, the objects have only these "
                 "fields. An unknown name is refused with a list of the columns."},
    Flag{.name = "done",
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kList,
         .variable = false,
         .config = false,
         .rival = "output",
         .section = "DOING A JOB ONCE",
         .brief = "list the jobs that are done (dlock once) instead of locks",
         .text = "The table has a line for each key, or for each of its periods, that is "
                 "remembered as done."},
    Flag{.name = "older-than",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::look,
         .commands = kList | kForceRelease,
         .variable = false,
         .config = false,
         .brief = "include only locks held for longer than this",
         .text = "A holder is included only if it is known to have held the lock for longer than "
                 "DURATION. With --done: a job, if it was done longer ago than that."},
    Flag{.name = "id",
         .value = "PREFIX",
         .group = Group::look,
         .commands = kForceRelease,
         .variable = false,
         .config = false,
         .brief = "break only the grant whose id begins like this",
         .text = "PREFIX is the id that \"dlock show\" prints, or the first of its digits. If "
                 "another grant holds the lock by now, nothing is broken and the status is 1. "
                 "Without --id, all holders that were shown lose the lock."},
    Flag{.name = "reason",
         .value = "TEXT",
         .group = Group::look,
         .commands = kForceRelease,
         .variable = false,
         .config = false,
         .brief = "tell the holder why",
         .text = "TEXT is shown in the final message of the holder's dlock and in its status file. "
                 "At most 1024 bytes without control characters."},
    Flag{.name = "yes",
         .letter = 'y',
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kForceRelease,
         .variable = false,
         .config = false,
         .brief = "break the lock without asking",
         .text = "Without --yes, and without a terminal to ask on, nothing is broken and the "
                 "status is 64."},

    Flag{.name = "name",
         .value = "NAME",
         .group = Group::id,
         .commands = kId,
         .variable = false,
         .config = false,
         .rival = "snowflake",
         .section = "NUMBERS",
         .brief = "print the next numbers of the counter NAME",
         .text = "NAME is as a KEY: 1 to 255 bytes of UTF-8 without control characters. A counter "
                 "and a lock of the same name have nothing to do with each other."},
    Flag{.name = "snowflake",
         .kind = ValueKind::boolean,
         .group = Group::id,
         .commands = kId,
         .variable = false,
         .config = false,
         .rival = "name",
         .section = "NUMBERS",
         .brief = "print 64-bit ids of time, worker and counter",
         .text = "All ids of one backend and one --prefix are different. They have at most 19 "
                 "digits and last until 2094."},
    Flag{.name = "count",
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::id,
         .commands = kId,
         .variable = false,
         .config = false,
         .range = {1, 1'000'000, "from 1 to 1000000"},
         .fallback = "1",
         .brief = "print N numbers, one on each line",
         .text = "All are taken in one step. With --name, they follow each other without a gap. N "
                 "is from 1 to 1000000."},

    Flag{.name = "schema",
         .value = "NAME",
         .group = Group::backends,
         .commands = kBackends,
         .variable = false,
         .config = false,
         .completes = Completes::backends,
         .brief = "print the statements that create the tables of this backend",
         .text = "Only the MySQL backends have tables. Use it when the user of dlock may not "
                 "create them: an administrator runs the statements once, as in \"dlock backends "
                 "--schema mysql | mariadb app\". With --prefix, the tables have that prefix. The "
                 "statements do nothing if the tables exist."},

    Flag{.name = "backend",
         .letter = 'b',
         .value = "NAME|URL",
         .commands = kWithBackend,
         .completes = Completes::backends,
         .fallback = "file",
         .brief = "where the lock is kept",
         .text = "NAME is a backend or a profile of the config file. A URL names the servers, too. "
                 "\"dlock backends\" lists the backends."},
    Flag{
        .name = "server",
        .letter = 'S',
        .kind = ValueKind::list,
        .value = "HOST[:PORT]",
        .commands = kWithBackend,
        .setting = "servers",
        .brief = "server of the backend, or several separated by commas",
        .text =
            "Use it if --backend is the name of a backend: a URL names its own servers. Without "
            "--server, most backends try this machine on the service's usual port. A server "
            "of redlock can also be a URL of its own. If one of them is a rediss:// URL, each must "
            "be a URL, so that none gets a password without TLS by mistake."},
    Flag{.name = "quiet",
         .letter = 'q',
         .kind = ValueKind::boolean,
         .commands = kWithBackend,
         .rival = "verbose",
         .brief = "print errors only",
         .text = "Warnings are omitted, and the messages that dlock waits for the lock, or that a "
                 "job was done before."},
    Flag{.name = "verbose",
         .letter = 'v',
         .kind = ValueKind::count,
         .commands = kWithBackend,
         .rival = "quiet",
         .brief = "print more; can be given twice",
         .text = "Once: also print when the lock is acquired and released. Twice: also print a "
                 "line for each exchange with the backend. In the environment and in the config "
                 "file it is a number: 0, 1 or 2."},
    Flag{.name = "json",
         .kind = ValueKind::boolean,
         .commands = kWithBackend | kBackends,
         .brief = "write JSON instead of text",
         .text = "Each message on stderr is a JSON object on a line of its own, {\"level\", "
                 "\"message\"}. The output of list, show, id and backends on stdout is one "
                 "JSON document; that of acquire and renew is one for each --key, on a line."},
    Flag{.name = "config",
         .value = "FILE",
         .commands = kWithBackend | kComplete,
         .config = false,
         .completes = Completes::files,
         .brief = "read this config file instead of the usual ones",
         .text = "FILE must exist; '' stands for none. Without --config, dlock reads "
                 "$XDG_CONFIG_HOME/dlock/config.json (by default ~/.config/dlock/config.json) and "
                 "/etc/dlock/config.json. If a key is in both, the first file counts."},
    Flag{.name = "password-file",
         .value = "FILE",
         .commands = kWithBackend,
         .completes = Completes::files,
         .brief = "read the password for the backend from FILE",
         .text = "The password is the whole content of FILE, except for a newline at its end. Only "
                 "the owner of FILE may have access to it (chmod 600)."},
    Flag{.name = "connect-timeout",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .commands = kWithBackend,
         .range = {1, 24 * kHoursMs, "more than 0 and at most 24h"},
         .fallback = "5s",
         .brief = "try to reach the backend for at most this long",
         .text = "At the start: if too few servers answer within DURATION, dlock exits with "
                 "status 69. If a server refuses the connection, dlock tries again until DURATION "
                 "is over; with --nonblock it does not. Once the backend has answered, --wait is "
                 "the limit: see OUTAGES."},
    Flag{
        .name = "prefix",
        .value = "TEXT",
        .commands = kWithBackend | kBackends,
        .brief = "begin names on the server with this text",
        .text =
            "It separates the locks of dlock from other data: Redis keys begin with it (by default "
            "dlock:), the ZooKeeper nodes of locks are below it (/dlock), and the names of MySQL "
            "tables begin with it (dlock_). All who share locks must use the same prefix."},
    Flag{.name = "help",
         .letter = 'h',
         .kind = ValueKind::boolean,
         .commands = kEveryCommand,
         .variable = false,
         .config = false,
         .brief = "show a summary of the command and its options",
         .text = "\"dlock help COMMAND\" explains each of them."},
};

std::string_view setting_name(const Flag& flag) {
  return flag.setting.empty() ? flag.name : flag.setting;
}

// Compares without making a string: this happens for each key of the config file at each start.
bool is_config_key(const Flag& flag, std::string_view key) {
  const auto letter = [](char c) { return c == '-' ? '_' : c; };
  return flag.config && std::ranges::equal(setting_name(flag), key, {}, letter);
}

}  // namespace

std::span<const Flag> flags() { return kFlags; }

const Flag& flag(std::string_view name) {
  for (const Flag& candidate : kFlags) {
    if (candidate.name == name) return candidate;
  }
  assert(!"no such flag");
  return kFlags.front();
}

std::string variable_of(const Flag& flag) { return "DLOCK_" + util::upper(config_key_of(flag)); }

std::vector<std::string> variables_of(const Flag& flag) {
  std::vector<std::string> out{variable_of(flag)};
  if (!flag.setting.empty()) out.push_back("DLOCK_" + util::upper(flag.name));
  return out;
}

std::string config_key_of(const Flag& flag) {
  std::string out(setting_name(flag));
  std::ranges::replace(out, '-', '_');
  return out;
}

const Flag* find_config_key(std::string_view key) {
  for (const Flag& candidate : kFlags) {
    if (is_config_key(candidate, key)) return &candidate;
  }
  return nullptr;
}

Result<ValueKind> config_kind(std::string_view key, bool in_profile) {
  if (in_profile && key == "url") return ValueKind::text;
  if (in_profile && key == "shards") return ValueKind::list;
  if (in_profile && key == "backend") {
    return Error{Errc::invalid, "; a profile has a \"url\" instead"};
  }
  if (const Flag* found = find_config_key(key)) return ValueKind(found->kind);
  return Error{Errc::invalid, advice_on_key(key)};
}

std::string choice_list(const Flag& flag, std::string_view separator) {
  std::string out;
  for (const std::string_view choice : flag.choices) {
    if (choice.empty()) continue;
    if (!out.empty()) out += separator;
    out += choice;
  }
  return out;
}

std::string value_in_help(const Flag& flag) {
  if (flag.takes_value()) return ' ' + std::string(flag.value);
  return flag.value.empty() ? "" : "[=" + std::string(flag.value) + ']';
}

std::string_view heading(Group group) {
  switch (group) {
    case Group::lock:
      return "Lock options";
    case Group::run:
      return "Run options";
    case Group::once:
      return "Options of once";
    case Group::grant:
      return "Options of acquire, renew and release";
    case Group::look:
      return "Options of list, show and force-release";
    case Group::id:
      return "Options of id";
    case Group::backends:
      return "Options of backends";
    case Group::common:
      return "Common options";
  }
  return "";
}

}  // namespace dlock::cli
