#include "cli/flags.hpp"

#include <algorithm>
#include <cassert>

#include "cli/unknown_words.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr unsigned kWithCommand = kRun | kOnce;
constexpr unsigned kWithLock = kWithCommand | kAcquire;
constexpr unsigned kWithToken = kRenew | kRelease;
constexpr unsigned kLooking = kList | kShow | kWatch;
constexpr unsigned kWithBackend = kWithLock | kWithToken | kLooking | kForceRelease | kId | kDoctor;

constexpr std::int64_t kHoursMs = 3'600'000;

constexpr std::array kFlags{
    Flag{.name = "key",
         .letter = 'k',
         .kind = ValueKind::list,
         .value = "KEY",
         .group = Group::lock,
         .commands = kWithLock | kWithToken,
         .said = Said::on_command_line,
         .completes = Completes::keys,
         .brief = "name of the lock; repeat it for several (not with once)"},
    Flag{.name = "nonblock",
         .letter = 'n',
         .kind = ValueKind::boolean,
         .group = Group::lock,
         .commands = kWithLock,
         .said = Said::on_command_line,
         .rival = "wait",
         .brief = "do not wait: exit with 75 if the lock is held"},
    Flag{.name = "wait",
         .letter = 'w',
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::lock,
         .commands = kWithLock,
         .rival = "nonblock",
         .fallback = "no limit",
         .brief = "wait at most this long, then exit with 75"},
    Flag{.name = "shared",
         .kind = ValueKind::boolean,
         .group = Group::lock,
         .commands = kRun | kAcquire,
         .said = Said::on_command_line,
         .rival = "slots",
         .brief = "share the lock with other --shared holders"},
    Flag{.name = "slots",
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::lock,
         .commands = kRun | kAcquire,
         .said = Said::on_command_line,
         .rival = "shared",
         .range = {1, 1'024, "from 1 to 1024"},
         .brief = "allow N holders at once; all must give the same N"},
    Flag{.name = "ttl",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::lock,
         .commands = kWithLock | kRenew | kDoctor,
         .range = {1'000, 24 * kHoursMs, "from 1s to 24h"},
         .fallback = "30s; acquire: none; renew: that of acquire",
         .brief = "the lock expires this long after its last renewal"},
    Flag{.name = "label",
         .value = "TEXT",
         .group = Group::lock,
         .commands = kWithLock,
         .brief = "show TEXT to others, for example the URL of a CI job"},

    Flag{.name = "remember",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::once,
         .commands = kOnce,
         .said = Said::on_command_line,
         .rival = "every",
         .range = {1'000, 3'650 * 24 * kHoursMs, "from 1s to 3650d"},
         .brief = "do the job again this long after it succeeded"},
    Flag{.name = "every",
         .value = "PERIOD",
         .group = Group::once,
         .commands = kOnce,
         .said = Said::on_command_line,
         .rival = "remember",
         .choices = {"1h", "1d", "1w"},
         .brief = "do the job once in each hour, day or week of UTC"},
    Flag{.name = "reset",
         .kind = ValueKind::boolean,
         .group = Group::once,
         .commands = kOnce,
         .said = Said::on_command_line,
         .brief = "forget that the job is done; without COMMAND"},
    Flag{.name = "done-exit-code",
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::once,
         .commands = kOnce,
         .hidden = true,
         .said = Said::on_command_line,
         .range = {0, 255, "from 0 to 255"},
         .fallback = "0",
         .brief = "exit with N if the job was done before"},

    Flag{.name = "while",
         .kind = ValueKind::number,
         .value = "PID",
         .group = Group::grant,
         .commands = kAcquire,
         .said = Said::on_command_line,
         .range = {1, 4'194'304, "from 1 to 4194304"},
         .brief = "renew the lock until the process PID ends; in a script: $$"},
    Flag{.name = "export",
         .value = "SHELL",
         .alone = "sh",
         .group = Group::grant,
         .commands = kAcquire,
         .said = Said::on_command_line,
         .choices = {"sh", "fish"},
         .brief = "print statements that set DLOCK_KEY, DLOCK_TOKEN and so on"},
    Flag{.name = "token-file",
         .value = "FILE",
         .group = Group::grant,
         .commands = kWithToken,
         .said = Said::on_command_line,
         .completes = Completes::files,
         .brief = "read the lock id, which acquire printed, from FILE"},

    Flag{.name = "max-hold",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::command,
         .commands = kWithCommand,
         .brief = "end COMMAND after this time, and exit with 124"},
    Flag{.name = "min-hold",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::command,
         .commands = kRun,
         .brief = "keep the lock at least this long"},
    Flag{.name = "on-lost",
         .value = "ACTION",
         .group = Group::command,
         .commands = kWithLock,
         .choices = {"term", "kill", "ignore"},
         .fallback = "term",
         .brief = "what to do with the command if the lock is lost"},
    Flag{.name = "kill-after",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::command,
         .commands = kWithLock,
         .fallback = "5s, at most a quarter of --ttl",
         .brief = "time between SIGTERM and SIGKILL"},
    Flag{.name = "leftovers",
         .value = "ACTION",
         .group = Group::command,
         .commands = kWithCommand,
         .choices = {"ignore", "wait", "kill"},
         .fallback = "ignore",
         .brief = "what to do with processes that outlive COMMAND"},

    Flag{.name = "output",
         .letter = 'o',
         .kind = ValueKind::list,
         .value = "COLUMNS",
         .group = Group::look,
         .commands = kLooking,
         .said = Said::on_command_line,
         .rival = "done",
         .completes = Completes::columns,
         .brief = "print these columns, separated by commas"},
    Flag{.name = "done",
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kList,
         .said = Said::on_command_line,
         .rival = "output",
         .brief = "list the jobs that are done (dlock once), not the locks"},
    Flag{.name = "older-than",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::look,
         .commands = kList | kForceRelease | kWatch,
         .said = Said::on_command_line,
         .brief = "only locks that have been held for longer than this"},
    Flag{.name = "interval",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .group = Group::look,
         .commands = kWatch,
         .said = Said::on_command_line,
         .range = {1'000, 24 * kHoursMs, "from 1s to 24h"},
         .fallback = "2s",
         .brief = "look again after this time"},
    Flag{.name = "exit-when",
         .value = "STATE",
         .group = Group::look,
         .commands = kWatch,
         .said = Said::on_command_line,
         .rival = "all",
         .choices = {"free"},
         .brief = "exit with 0 when the one lock KEY is in this state"},
    Flag{.name = "id",
         .value = "PREFIX",
         .group = Group::look,
         .commands = kForceRelease,
         .said = Said::on_command_line,
         .brief = "break the lock only if its id begins with PREFIX"},
    Flag{.name = "reason",
         .value = "TEXT",
         .group = Group::look,
         .commands = kForceRelease,
         .said = Said::on_command_line,
         .brief = "tell the holder why"},
    Flag{.name = "yes",
         .letter = 'y',
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kForceRelease,
         .said = Said::on_command_line,
         .brief = "break the lock without asking"},

    Flag{.name = "name",
         .value = "NAME",
         .group = Group::id,
         .commands = kId,
         .said = Said::on_command_line,
         .rival = "snowflake",
         .brief = "print the next numbers of the counter NAME"},
    Flag{.name = "snowflake",
         .kind = ValueKind::boolean,
         .group = Group::id,
         .commands = kId,
         .said = Said::on_command_line,
         .rival = "name",
         .brief = "print numbers made of time, worker and counter"},
    Flag{.name = "count",
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::id,
         .commands = kId,
         .said = Said::on_command_line,
         .range = {1, 1'000'000, "from 1 to 1000000"},
         .fallback = "1",
         .brief = "print N numbers, one on each line"},

    Flag{.name = "all",
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kDoctor | kWatch,
         .said = Said::on_command_line,
         .rival = "exit-when",
         .brief = "each backend that the config file names"},
    Flag{.name = "read-only",
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kDoctor,
         .said = Said::on_command_line,
         .brief = "do not acquire a lock to try the rights"},
    Flag{.name = "strict",
         .kind = ValueKind::boolean,
         .group = Group::look,
         .commands = kDoctor,
         .said = Said::on_command_line,
         .brief = "exit with 1 for a warning, too"},

    Flag{.name = "schema",
         .value = "NAME",
         .group = Group::backends,
         .commands = kBackends,
         .said = Said::on_command_line,
         .completes = Completes::schemas,
         .brief = "print the statements that create the tables of a backend"},

    Flag{.name = "conflict-exit-code",
         .letter = 'E',
         .kind = ValueKind::number,
         .value = "N",
         .group = Group::result,
         .commands = kWithCommand,
         .range = {0, 255, "from 0 to 255"},
         .fallback = "75",
         .brief = "exit with N if the lock is held"},
    Flag{.name = "status-file",
         .value = "FILE",
         .group = Group::result,
         .commands = kWithCommand,
         .said = Said::on_command_line,
         .completes = Completes::files,
         .brief = "write how the run ended to FILE, as JSON"},
    Flag{.name = "event-log",
         .value = "FILE",
         .group = Group::result,
         .commands = kWithLock,
         .completes = Completes::files,
         .brief = "append a line of JSON to FILE for each event"},
    Flag{.name = "quiet",
         .letter = 'q',
         .kind = ValueKind::boolean,
         .group = Group::result,
         .commands = kWithBackend,
         .rival = "verbose",
         .brief = "print errors only"},
    Flag{.name = "verbose",
         .letter = 'v',
         .kind = ValueKind::count,
         .group = Group::result,
         .commands = kWithBackend,
         .rival = "quiet",
         .brief = "print more; -vv: each request to the server, too"},
    Flag{.name = "json",
         .kind = ValueKind::boolean,
         .group = Group::result,
         .commands = kWithBackend | kBackends,
         .brief = "print JSON; each message is a line of it"},

    Flag{.name = "backend",
         .letter = 'b',
         .value = "NAME|URL",
         .commands = kWithBackend,
         .completes = Completes::backends,
         .fallback = "file: of this machine and user",
         .brief = "where locks are kept"},
    Flag{.name = "password-file",
         .value = "FILE",
         .commands = kWithBackend,
         .said = Said::in_profiles,
         .completes = Completes::files,
         .brief = "read the password of the server from FILE"},
    Flag{.name = "config",
         .value = "FILE",
         .commands = kWithBackend,
         .said = Said::not_in_config,
         .completes = Completes::files,
         .brief = "read this config file only"},
    Flag{.name = "connect-timeout",
         .kind = ValueKind::duration,
         .value = "DURATION",
         .commands = kWithBackend,
         .range = {1, 24 * kHoursMs, "more than 0 and at most 24h"},
         .fallback = "5s",
         .brief = "time to reach the server at the start"},
    Flag{.name = "server",
         .letter = 'S',
         .kind = ValueKind::list,
         .value = "HOST[:PORT]",
         .commands = kWithBackend,
         .hidden = true,
         .said = Said::in_profiles,
         .setting = "servers",
         .brief = "server of the backend, or several separated by commas"},
    Flag{.name = "prefix",
         .value = "TEXT",
         .commands = kWithBackend | kBackends,
         .hidden = true,
         .said = Said::in_profiles,
         .brief = "begin names on the server with this text"},
    Flag{.name = "help",
         .letter = 'h',
         .kind = ValueKind::boolean,
         .commands = kEveryCommand,
         .hidden = true,
         .said = Said::on_command_line,
         .brief = "show the options of the command"},
};

std::string_view setting_name(const Flag& flag) {
  return flag.setting.empty() ? flag.name : flag.setting;
}

// Compares without creating a string, because this runs for each key of the config file at each
// start.
bool is_config_key(const Flag& flag, std::string_view key) {
  const auto letter = [](char c) { return c == '-' ? '_' : c; };
  return flag.in_config() && std::ranges::equal(setting_name(flag), key, {}, letter);
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
  if (const Flag* found = find_config_key(key)) {
    if (found->said != Said::in_profiles || in_profile) return ValueKind(found->kind);
    return Error{Errc::invalid,
                 "; it belongs to one backend: write it into a profile, beside its \"url\""};
  }
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

}  // namespace dlock::cli
