#include "cli/flags.hpp"

#include <cassert>

namespace dlock::cli {
namespace {

constexpr unsigned kWithLock = kRun;
constexpr unsigned kLooking = kList | kShow;
constexpr unsigned kWithBackend = kRun | kLooking | kForceRelease;

constexpr std::array kFlags{
    Flag{.name = "key",
         .letter = 'k',
         .value = "KEY",
         .group = Group::lock,
         .commands = kWithLock,
         .variable = false,
         .config = false,
         .brief = "name of the lock",
         .text = "The name of the lock: 1 to 255 bytes of UTF-8 without control characters. "
                 "Everybody who uses the same name with the same backend shares one lock. "
                 "Upper and lower case differ in every backend."},
    Flag{.name = "nonblock",
         .letter = 'n',
         .kind = ValueKind::boolean,
         .group = Group::lock,
         .commands = kWithLock,
         .rival = "wait",
         .brief = "do not wait: give up at once if the lock is held",
         .text = "Try once, and exit with status 75 (see --conflict-exit-code) if somebody else "
                 "holds the lock. The same as --wait 0."},
    Flag{.name = "wait",
         .letter = 'w',
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::lock,
         .commands = kWithLock,
         .rival = "nonblock",
         .fallback = "for ever",
         .brief = "wait for the lock at most this long",
         .text = "If the lock cannot be had within DURATION, exit with status 75 (see "
                 "--conflict-exit-code). 0 means: try once."},
    Flag{.name = "ttl",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::lock,
         .commands = kWithLock,
         .fallback = "30s",
         .brief = "how long the lock outlives a holder that falls silent",
         .text = "On a lock service the lock ends by itself this long after its holder was last "
                 "heard of; dlock renews it three times as often while the command runs. A short "
                 "DURATION frees the lock sooner after a machine has died, a long one bears longer "
                 "troubles of the network. From 1s to 24h. Backends that see the holder die do "
                 "without it."},
    Flag{.name = "shared",
         .kind = ValueKind::boolean,
         .group = Group::lock,
         .commands = kWithLock,
         .rival = "slots",
         .brief = "share the lock with other --shared holders (a read lock)",
         .text = "Any number of holders may share the lock if all of them said --shared; a holder "
                 "who did not has it alone."},
    Flag{.name = "slots",
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::lock,
         .commands = kWithLock,
         .rival = "shared",
         .brief = "let up to N hold the lock at once (a semaphore)",
         .text = "Up to N holders may have the lock at once. All of them must name the same N, "
                 "from 1 to 1000."},
    Flag{.name = "label",
         .value = "TEXT",
         .group = Group::lock,
         .commands = kWithLock,
         .brief = "text that others are shown while the lock is held",
         .text = "A note for whoever finds the lock held, for example the URL of a CI job. At most "
                 "1024 bytes without control characters."},

    Flag{.name = "conflict-exit-code",
         .letter = 'E',
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::run,
         .commands = kRun,
         .fallback = "75",
         .brief = "exit status if the lock is busy",
         .text = "The exit status, from 0 to 255, when the lock is held by somebody else and "
                 "--nonblock or --wait says to wait no longer."},
    Flag{.name = "leftovers",
         .value = "WHAT",
         .group = Group::run,
         .commands = kRun,
         .choices = {"ignore", "wait", "kill"},
         .fallback = "ignore",
         .brief = "what to do with processes that the command leaves behind",
         .text = "When the command ends by itself and processes that it started still run: ignore "
                 "them, give the lock up and say in a warning which they are; wait for them before "
                 "giving the lock up; or kill them first (SIGTERM, and SIGKILL after "
                 "--kill-after)."},
    Flag{.name = "kill-after",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::run,
         .commands = kRun,
         .fallback = "5s, or a quarter of --ttl if that is less",
         .brief = "time from SIGTERM to SIGKILL when dlock ends the command",
         .text = "How long the command may take to clean up after SIGTERM. When the lock is about "
                 "to be lost, SIGTERM comes this long before the lock ends, so DURATION must be "
                 "less than half of --ttl."},
    Flag{.name = "on-lost",
         .value = "WHAT",
         .group = Group::run,
         .commands = kRun,
         .choices = {"term", "kill", "ignore"},
         .fallback = "term",
         .brief = "what to do when the lock is lost while the command runs",
         .text = "term: send SIGTERM to the command and all that it started, and SIGKILL after "
                 "--kill-after. kill: send SIGKILL at once. ignore: let the command go on, without "
                 "the lock, beside whoever gets it next; only for a command that checks its "
                 "fencing token wherever it writes."},
    Flag{.name = "max-hold",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::run,
         .commands = kRun,
         .brief = "end the command after this long",
         .text = "A command that still runs after DURATION is ended (SIGTERM, and SIGKILL after "
                 "--kill-after), the lock is given up, and dlock exits with status 124, as "
                 "timeout(1) does. 0 means no limit."},
    Flag{.name = "min-hold",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::run,
         .commands = kRun,
         .brief = "keep the lock at least this long",
         .text = "If the command ends sooner, dlock exits with its status at once, but nobody else "
                 "gets the lock before DURATION has passed since it was acquired. Keeps a job that "
                 "all machines start at the same minute from running on a second machine because "
                 "the clocks differ and the first was quick."},
    Flag{.name = "status-file",
         .value = "FILE",
         .group = Group::run,
         .commands = kRun,
         .variable = false,
         .config = false,
         .completes = Completes::files,
         .brief = "write the outcome to FILE as JSON",
         .text = "At the end, write what happened to FILE, so that a script can tell dlock's own "
                 "status 75 from that of a command that exits with 75. FILE is replaced in one "
                 "step."},

    Flag{.name = "output",
         .letter = 'o',
         .kind = ValueKind::list,
         .value = "COLUMNS",
         .group = Group::look,
         .commands = kLooking,
         .config = false,
         .brief = "which columns to print, separated by commas",
         .text = "Print a table of these columns, with a line for each holder; with --json, these "
                 "fields. The manual page has a list of the columns, and so has the message about "
                 "one that does not exist."},
    Flag{.name = "older-than",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::look,
         .commands = kList | kForceRelease,
         .config = false,
         .brief = "only what is held for longer than this",
         .text = "Leave out those who hold the lock for DURATION or less, and those of whom that "
                 "is not known."},
    Flag{.name = "id",
         .value = "PREFIX",
         .group = Group::look,
         .commands = kForceRelease,
         .variable = false,
         .config = false,
         .brief = "break only the grant whose id begins like this",
         .text = "The id that \"dlock show\" prints, or the first of its digits. If the lock is "
                 "held by another grant by now, nothing is broken and the status is 1. Without it, "
                 "all holders that were shown lose the lock."},
    Flag{.name = "reason",
         .value = "TEXT",
         .group = Group::look,
         .commands = kForceRelease,
         .config = false,
         .brief = "why; the holder is told",
         .text = "Stands in the last message of the holder's dlock and in its status file. At most "
                 "1024 bytes without control characters."},
    Flag{.name = "yes",
         .letter = 'y',
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kForceRelease,
         .config = false,
         .brief = "break it without a question",
         .text = "For scripts: without it, and without a terminal to ask on, nothing is broken and "
                 "the status is 64."},

    Flag{.name = "schema",
         .value = "NAME",
         .commands = kBackends,
         .variable = false,
         .config = false,
         .completes = Completes::backends,
         .brief = "print the statements that make the tables of this backend",
         .text = "For a database whose user may not create tables: who may runs them once, as in "
                 "\"dlock backends --schema mysql | mariadb app\". With --prefix, for tables of "
                 "that name. They do nothing where the tables are already there."},

    Flag{.name = "backend",
         .letter = 'b',
         .value = "NAME|URL",
         .commands = kWithBackend,
         .completes = Completes::backends,
         .fallback = "file",
         .brief = "where the lock is kept",
         .text = "The name of a backend, a URL that names its servers too, or a profile of the "
                 "config file. \"dlock backends\" lists the backends."},
    Flag{.name = "server",
         .letter = 'S',
         .kind = ValueKind::list,
         .value = "HOST[:PORT]",
         .commands = kWithBackend,
         .setting = "servers",
         .brief = "server of the backend; repeat it or use commas for more",
         .text = "The servers of a backend that is given by its bare name. One value can name "
                 "several, separated by commas. Without it, most backends try this machine on the "
                 "service's usual port. A server of redlock can also be a URL of its own."},
    Flag{.name = "shard",
         .kind = ValueKind::list,
         .value = "URL",
         .commands = kWithBackend,
         .setting = "shards",
         .brief = "one of several databases that share the locks; repeat it",
         .text =
             "In place of --backend: each lock is in one of these databases, by its key, and "
             "so one that is down takes only its own locks with it. All must be of one backend. "
             "One value can name several, separated by commas. The manual page has more, under "
             "SHARDING."},
    Flag{.name = "prefix",
         .value = "TEXT",
         .commands = kWithBackend | kBackends,
         .brief = "what the names of locks begin with on the server",
         .text = "Separates the locks of dlock from other data: what Redis keys begin with (by "
                 "default dlock:), the ZooKeeper node above all locks (/dlock), or what MySQL "
                 "tables are called first (dlock_). All who share locks must use the same one."},
    Flag{.name = "config",
         .value = "FILE",
         .commands = kWithBackend | kComplete,
         .config = false,
         .completes = Completes::files,
         .brief = "read this config file instead of the usual ones",
         .text = "Without it, dlock reads $XDG_CONFIG_HOME/dlock/config.json (by default "
                 "~/.config/dlock/config.json), or else /etc/dlock/config.json, if there is one. "
                 "A FILE that is named must exist."},
    Flag{.name = "connect-timeout",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .commands = kWithBackend,
         .fallback = "5s",
         .brief = "how long to try to reach the backend",
         .text = "If no server (or too few of them) can be reached within DURATION, exit with "
                 "status 69. Does not limit the wait for a lock that is held: see --wait."},
    Flag{.name = "password-file",
         .value = "FILE",
         .commands = kWithBackend,
         .completes = Completes::files,
         .brief = "read the password for the backend from FILE",
         .text = "The whole of FILE, but for one newline at its end, is the password. Only its "
                 "owner may have access to it (chmod 600)."},
    Flag{.name = "zk-auth-file",
         .value = "FILE",
         .commands = kWithBackend,
         .completes = Completes::files,
         .brief = "read the ZooKeeper user and password from FILE",
         .text =
             "The whole of FILE, but for one newline at its end, is USER:PASSWORD of ZooKeeper's "
             "digest scheme. Nodes that dlock creates are then open to this user only. Only its "
             "owner may have access to FILE (chmod 600)."},
    Flag{.name = "zk-style",
         .value = "STYLE",
         .commands = kWithBackend,
         .choices = {"curator", "curator-rw", "kazoo"},
         .fallback = "curator",
         .brief = "whose names ZooKeeper nodes get",
         .text =
             "So that others on the same lock know a node of dlock for a lock: curator is for "
             "InterProcessMutex of Apache Curator, curator-rw for its InterProcessReadWriteLock, "
             "kazoo for Lock, ReadLock and WriteLock of kazoo. dlock itself knows all of them, "
             "whatever it says here."},
    Flag{.name = "json",
         .kind = ValueKind::boolean,
         .commands = kWithBackend | kBackends,
         .brief = "write JSON instead of text",
         .text = "Messages on stderr become one JSON object per line, {\"level\", \"message\"}, "
                 "and what is printed on stdout one JSON document."},
    Flag{.name = "quiet",
         .letter = 'q',
         .kind = ValueKind::boolean,
         .commands = kWithBackend,
         .rival = "verbose",
         .brief = "say nothing but errors",
         .text = "Leave out warnings and what is said while waiting for the lock."},
    Flag{.name = "verbose",
         .letter = 'v',
         .kind = ValueKind::count,
         .commands = kWithBackend,
         .rival = "quiet",
         .brief = "say more; twice: say all",
         .text = "Once: tell when the lock is acquired, renewed with trouble and released. Twice: "
                 "tell of every exchange with the backend. In the environment and in the config "
                 "file it is a number: 0, 1 or 2."},
    Flag{.name = "help",
         .letter = 'h',
         .kind = ValueKind::boolean,
         .commands = kEveryCommand,
         .variable = false,
         .config = false,
         .brief = "show this help",
         .text = "Print a summary of the command and its options."},
};

std::string_view setting_name(const Flag& flag) {
  return flag.setting.empty() ? flag.name : flag.setting;
}

// Compares without making a string: this happens for each key of the config file at each start.
bool is_config_key(const Flag& flag, std::string_view key) {
  const std::string_view name = setting_name(flag);
  if (!flag.config || name.size() != key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if ((name[i] == '-' ? '_' : name[i]) != key[i]) return false;
  }
  return true;
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

std::string variable_of(const Flag& flag) {
  if (!flag.variable) return "";
  std::string out = "DLOCK_";
  for (const char c : setting_name(flag)) {
    out += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return out;
}

std::string config_key_of(const Flag& flag) {
  if (!flag.config) return "";
  std::string out(setting_name(flag));
  for (char& c : out) c = c == '-' ? '_' : c;
  return out;
}

const Flag* find_config_key(std::string_view key) {
  for (const Flag& candidate : kFlags) {
    if (is_config_key(candidate, key)) return &candidate;
  }
  return nullptr;
}

std::optional<ValueKind> config_kind(std::string_view key, bool in_profile) {
  if (in_profile && key == "url") return ValueKind::text;
  if (in_profile && key == "backend") return std::nullopt;
  const Flag* found = find_config_key(key);
  return found == nullptr ? std::nullopt : std::optional(found->kind);
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

std::string_view heading(Group group) {
  switch (group) {
    case Group::lock:
      return "Lock options";
    case Group::run:
      return "Run options";
    case Group::look:
      return "Options of list, show and force-release";
    case Group::common:
      return "Common options";
  }
  return "";
}

}  // namespace dlock::cli
