// Prose is written as in help: plain text in which --flags come out bold.  What only the man page
// says stands here, in roff.
#include <string>

#include "cli/cmd_backends.hpp"
#include "cli/flags.hpp"
#include "cli/generate.hpp"
#include "cli/print_text.hpp"
#include "cli/version.hpp"
#include "engine/exit_status.hpp"

namespace dlock::cli {
namespace {

constexpr std::string_view kDescription = R"(.SH DESCRIPTION
.B dlock
runs a command while it holds a lock that is known under one name to all
processes and machines that use the same backend.
At most one of them holds the lock at a time (or as many as
.B \-\-shared
and
.B \-\-slots
allow); the others wait, or give up.
.PP
With no configuration at all, locks are kept in files of this machine and need
no server.
With Redis, ZooKeeper or MySQL behind it, the same command line locks across
machines.
.PP
Three things hold for every backend.
.IP \(bu 2
If the lock is lost, because the network or the lock service failed for too
long, the command and all that it started are dead before somebody else can get
the lock.
.IP \(bu 2
If dlock itself is killed, nothing that it started is left running.
.IP \(bu 2
The command gets its arguments, standard input and output, environment and
signals as if dlock were not there, and dlock exits with its status.
)";

constexpr std::string_view kChoosing = R"(.SH CHOOSING A BACKEND
.B \-\-backend
takes one of three things.
.TP
.B a name
as in the table below.
The servers come from
.BR \-\-server ,
else from
.BR DLOCK_SERVERS ,
else from the config file; without any, most backends try this machine on the
usual port of the service.
.TP
.B a URL
which names the servers, and where there are any also user, password and
database:
.nf
.in +2n
%URLS%.in -2n
.fi
A special character in a user, password or path is written as %XX.
.TP
.B a profile
of the config file, under a name of your own.
.PP
A password belongs in a profile, in
.B DLOCK_BACKEND
or in
.BR \-\-password\-file .
On the command line, everybody on the machine can read it with
.BR ps (1),
and dlock warns of it.
)";

constexpr std::string_view kBackendsHead = R"(.SH BACKENDS
What each can do.
FENCING: each grant has a number that is larger than all before.
WAITERS: those who wait for a lock can be listed.
ENDS ON: what frees the lock of a holder that dies: its
.IR exit ,
at once; its
.IR disconnect ,
when the server finds the connection gone; or its
.IR ttl ,
when that has run out.
ORDER: who of those that wait comes next; with
.I none
it is a matter of luck, and the
.I kernel
promises nothing.
REACH: whether the lock is seen by one
.I host
or by all that reach the server.
.PP
.TS
)";

constexpr std::string_view kConfig = R"(.SH CONFIG FILE
The first of these that exists is read:
.IP \(bu 2
the file that
.B \-\-config
or
.B DLOCK_CONFIG
names, which must exist;
.IP \(bu 2
.IR $XDG_CONFIG_HOME/dlock/config.json ,
by default
.IR \(ti/.config/dlock/config.json ;
.IP \(bu 2
.IR /etc/dlock/config.json .
.PP
It holds a JSON object.
Its keys are the names of options with
.B _
for
.BR \- ;
the servers stand under
.BR servers ,
as a string or an array.
Durations are strings, or numbers of seconds.
.B backends
holds profiles: objects with a
.B url
and any other keys, which count only when
.B \-\-backend
names the profile, and then more than those at the top.
.PP
.nf
.in +4n
{
  "backend": "prod",
  "ttl": "45s",
  "backends": {
    "prod": {
      "url": "redis://locks@redis\-1.example.net:6379/0",
      "password_file": "/etc/dlock/redis.password"
    }
  }
}
.in -4n
.fi
.PP
An option on the command line beats the environment, that beats the profile,
that beats the top of the config file.
An unknown key or a value of the wrong type is an error, with status 78.
A config file that others can write to, or that holds a password and can be read
by others, is refused.
The config file cannot set:
%NOT_IN_CONFIG%.
)";

constexpr std::string_view kEnvironment = R"(.SH ENVIRONMENT
Each option with a long form has a variable, which an option on the command line
overrides.
One that is empty counts as unset.
Options without a value take 1, true or yes, and 0, false or no.
.PP
.nf
.in +4n
%VARIABLES%.in -4n
.fi
.PP
%NO_VARIABLE%
have none: they belong to one lock, and the variables of that form are what the
command finds in its environment:
.TP
.B DLOCK_KEY
the name of the lock that it holds;
.TP
.B DLOCK_TOKEN
the id of this grant;
.TP
.B DLOCK_FENCE
the fencing token, where the backend has one: a number larger than that of every
earlier grant of this lock.
Hand it to what the command writes to, and let that refuse a number smaller than
one that it has seen.
)";

constexpr std::string_view kStatusFile = R"(.SH STATUS FILE
With
.B \-\-status\-file
dlock writes one JSON object when all is over:
.TP
.B outcome
.BR completed ,
.BR busy ,
.BR lost ,
.BR unreachable ,
.BR denied ,
.BR max\-hold ,
.BR signalled ,
.B not\-started
or
.BR error ;
.TP
.B exit_status
the status that dlock exits with;
.TP
.BR key ", " backend ", " fence
the lock, where it is kept, and the fencing token;
.TP
.BR waited_ms ", " held_ms
how long it was waited for and held, in milliseconds;
.TP
.B reason
what went wrong, in words.
.PP
What is not known is null.
The file appears under its name only when it is complete.
)";

constexpr std::string_view kSignals = R"(.SH SIGNALS AND TERMINAL
Every signal that can be caught and that somebody sends to dlock is passed on.
SIGTERM, SIGINT, SIGHUP and SIGQUIT go to the command and to all that it
started; the others go to the command alone.
Once the command has ended after one of these, what is left of its processes is
ended, and only then the lock is given up.
While dlock still waits for the lock, such a signal ends the wait, and dlock
exits with 128 plus the number of the signal.
.PP
The command stays in the process group of dlock, as under
.BR nice (1):
Ctrl\-C reaches it from the terminal itself, pipelines work as usual, and after
Ctrl\-Z and
.B fg
both go on.
While they are stopped, a second process of dlock keeps the lock renewed.
)";

constexpr std::string_view kCaveats = R"(.SH CAVEATS
.TP
.B Both processes of dlock killed at once.
Each of the two processes of dlock ends the command when the other is killed.
If both are killed in the same instant, the kernel still kills the command
itself (see PR_SET_PDEATHSIG in
.BR prctl (2)),
but not what the command has started.
.TP
.B A machine that is frozen as a whole.
When a virtual machine is paused for longer than the ttl, its lock passes on,
and dlock can only end the command after the thaw: its first act is to look at
the clock.
What the command writes in between can be refused by whoever checks
.BR DLOCK_FENCE .
.TP
.B \-\-on\-lost ignore
gives up the promise that no two commands run under one lock.
Use it only if the fencing token is checked wherever the command writes.
.TP
.B NFS.
The file backend is meant for a local file system.
On NFS, locks depend on the server and on the mount options, and can be lost
without a sign.
.TP
.B Fencing tokens of the file backend
stand in the lock directory.
.I /run/lock
is in memory, so the numbers begin again after a boot.
If they must not, make a directory on disk and name it:
.BR "\-\-backend file:///var/lib/dlock" .
.TP
.B Readers and writers of the file backend.
.BR flock (2)
is not fair: as long as holders with
.B \-\-shared
follow one another without a gap, one without it waits.
.TP
.B flock(1) beside the file backend.
The two exclude each other on the same file, except that dlock does not notice
.B flock \-s
beside a lock with
.BR \-\-slots .
.TP
.B Removing lock files.
A lock file holds the fencing counter of its key: removed, it begins again at 1.
Whoever holds the lock at that moment has lost it, and dlock ends the command.
.TP
.B \-\-min\-hold
leaves a process behind that keeps the lock.
A service manager or a container that ends everything when dlock exits ends that
process, too, and the lock with it.
)";

constexpr std::string_view kExamples = R"(.SH EXAMPLES
A cron job that must not overlap with itself, and skips a turn if it would:
.PP
.nf
.in +4n
*/5 * * * *  dlock run \-n \-E 0 \-k sync \-\- /usr/local/bin/sync\-mail
.in -4n
.fi
.PP
One report for the whole cluster, with ten minutes of patience:
.PP
.nf
.in +4n
dlock run \-b redis://redis\-1:6379/0 \-k nightly\-report \-w 10m \-\- ./report.sh
.in -4n
.fi
.PP
At most three builds at a time on this machine:
.PP
.nf
.in +4n
dlock run \-k build \-\-slots 3 \-\- make \-j4
.in -4n
.fi
.PP
Many readers, or one writer:
.PP
.nf
.in +4n
dlock run \-k catalogue \-\-shared \-\- ./query.sh
dlock run \-k catalogue \-\- ./rebuild.sh
.in -4n
.fi
.PP
A script that wants to know what happened:
.PP
.nf
.in +4n
dlock run \-k deploy \-w 60 \-\- ./deploy.sh
case $? in
0)  echo deployed ;;
75) echo "somebody else is deploying" ;;
79) echo "lost the lock; check what ./deploy.sh has done" ;;
*)  echo failed ;;
esac
.in -4n
.fi
)";

constexpr std::string_view kSeeAlso = R"(.SH SEE ALSO
.BR flock (1),
.BR timeout (1),
.BR flock (2)
)";

bool is_flag_char(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }

// Plain text as roff; `--flags` in bold if `bold_flags`.
std::string roff(std::string_view text, bool bold_flags) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (bold_flags && text.substr(i).starts_with("--") && i + 2 < text.size() &&
        text[i + 2] >= 'a' && text[i + 2] <= 'z') {
      std::size_t end = i;
      while (end < text.size() && is_flag_char(text[end])) ++end;
      out += "\\fB" + roff(text.substr(i, end - i), false) + "\\fR";
      i = end - 1;
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else {
      out += c;
    }
  }
  return out;
}

// Sentences on lines of their own keep the diffs of the committed page small.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto blank = text.find("\n\n");
    std::string one = roff(text.substr(0, blank), true);
    for (std::size_t at = 0; (at = one.find(". ", at)) != std::string::npos;) {
      one.replace(at, 2, ".\n");
    }
    out += (out.empty() ? "" : ".PP\n") + one + '\n';
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 2);
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view mark, const std::string& with) {
  std::string out(text);
  return out.replace(out.find(mark), mark.size(), with);
}

std::string bold(std::string_view text) { return "\\fB" + roff(text, false) + "\\fR"; }

// Words as they stand in a synopsis: --flags and lower case are typed as they are, CAPITALS are
// filled in.
std::string synopsis_words(std::string_view text) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    if (word.empty()) return;
    const bool filled_in = word[0] >= 'A' && word[0] <= 'Z';
    out += (filled_in ? "\\fI" : "\\fB") + roff(word, false) + "\\fR";
    word.clear();
  };
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-') {
      word += c;
    } else {
      flush();
      out += c == '.' ? std::string("\\&.") : std::string(1, c);
    }
  }
  flush();
  return out;
}

std::string synopsis() {
  std::string out = ".SH SYNOPSIS\n.nf\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += "\\fBdlock " + std::string(command.name) + "\\fR";
    if (!command.synopsis.empty()) out += ' ' + synopsis_words(command.synopsis);
    out += '\n';
  }
  return out + ".fi\n";
}

std::string command_section() {
  std::string out = ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += ".SS \"dlock " + std::string(command.name) + "\"\n" + paragraphs(command.text);
  }
  return out;
}

std::string option(const Flag& flag) {
  std::string out = ".TP\n";
  if (flag.letter != 0) out += bold(std::string("-") + flag.letter) + ", ";
  out += bold("--" + std::string(flag.name));
  if (flag.takes_value()) out += "\\fR \\fI" + roff(flag.value, false) + "\\fR";
  out += '\n' + paragraphs(flag.text);
  if (flag.repeats() && flag.takes_value()) out += "Can be repeated.\n";
  if (!flag.rival.empty())
    out += "Not together with " + bold("--" + std::string(flag.rival)) + ".\n";
  if (!flag.fallback.empty()) out += "The default: " + roff(flag.fallback, true) + ".\n";
  return out;
}

std::string option_section() {
  std::string out =
      ".SH OPTIONS\n"
      "A\n.I DURATION\n"
      "is a number of seconds, with a fraction if need be, or has units: 0.5, 90s, 250ms, 1h30m, "
      "2d.\n"
      "Of an option that is given twice the last one counts, unless it can be repeated.\n"
      "An option without a value can be taken back with\n.BR =no ,\nas in\n"
      ".BR \\-\\-shared=no .\n";
  for (const Group group : {Group::lock, Group::run, Group::common}) {
    out += ".SS " + std::string(heading(group)) + '\n';
    for (const Flag& flag : flags()) {
      if (flag.group == group) out += option(flag);
    }
  }
  return out;
}

std::string choosing_section(std::span<const BackendEntry> backends) {
  std::string urls;
  for (const BackendEntry& entry : backends) urls += roff(entry.url_example, false) + '\n';
  return replaced(kChoosing, "%URLS%", urls);
}

std::string backend_section(std::span<const BackendEntry> backends) {
  const Table table = backend_table(backends, false);
  std::string out(kBackendsHead);
  // One space between columns, or the table would be wider than a terminal.
  std::string rest;
  std::string bold_rest;
  for (std::size_t i = 1; i < table.headings.size(); ++i) {
    rest += "1 l";
    bold_rest += "1 lB";
  }
  out += "lB" + bold_rest + "\nl" + rest + ".\n";
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    out += (i == 0 ? "" : "\t") + std::string(table.headings[i]);
  }
  out += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += (i == 0 ? "" : "\t") + roff(cell_text(row[i]), false);
    }
    out += '\n';
  }
  out += ".TE\n";
  for (const BackendEntry& entry : backends) {
    out += ".TP\n" + bold(entry.name);
    if (!entry.alias.empty()) out += " (or " + bold(entry.alias) + ')';
    out += '\n' + roff(entry.brief, false) + '\n';
  }
  return out;
}

// "\fB--a\fR, \fB--b\fR and \fB--c\fR" of the flags that `wanted` picks.
template <class Wanted>
std::string enumerated(Wanted wanted) {
  std::vector<std::string> names;
  for (const Flag& flag : flags()) {
    if (wanted(flag)) names.push_back(bold("--" + std::string(flag.name)));
  }
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

std::string config_section() {
  return replaced(kConfig, "%NOT_IN_CONFIG%",
                  enumerated([](const Flag& flag) { return !flag.config && flag.name != "help"; }));
}

std::string environment_section() {
  std::string variables;
  for (const Flag& flag : flags()) {
    if (!flag.variable) continue;
    std::string name = variable_of(flag);
    name.append(26 - std::min<std::size_t>(name.size(), 25), ' ');
    variables += name + roff("--" + std::string(flag.name), false) + '\n';
  }
  return replaced(
      replaced(kEnvironment, "%VARIABLES%", variables), "%NO_VARIABLE%",
      enumerated([](const Flag& flag) { return !flag.variable && flag.name != "help"; }));
}

std::string status_section() {
  std::string out = ".SH EXIT STATUS\n";
  for (const exit_status::Row& row : exit_status::kTable) {
    out += ".TP\n" + bold(row.status) + '\n' + roff(row.meaning, true) + '\n';
  }
  return out +
         ".PP\nThe other commands use the same numbers, and 1 for a plain no or for output\n"
         "that could not be written.\n";
}

}  // namespace

std::string generate_man(std::span<const BackendEntry> backends) {
  std::string out =
      "'\\\" t\n"
      ".\\\" Written by \"dlock generate man\"; do not edit.\n"
      ".TH DLOCK 1 \"\" \"dlock " +
      std::string(kVersionText) +
      "\" \"User Commands\"\n"
      ".SH NAME\n"
      "dlock \\- run a command while holding a lock, on one machine or on many\n";
  out += synopsis();
  out += kDescription;
  out += command_section();
  out += option_section();
  out += choosing_section(backends);
  out += backend_section(backends);
  out += config_section();
  out += environment_section();
  out += status_section();
  out += kStatusFile;
  out += kSignals;
  out += kCaveats;
  out += kExamples;
  out += kSeeAlso;
  return out;
}

}  // namespace dlock::cli
