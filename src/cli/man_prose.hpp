// What only the man page says: of options and commands in plain text, its other sections in roff.
#pragma once

#include <array>
#include <string_view>

namespace dlock::cli::man {

/// What the page says of an option behind its brief; plain text, in which --flags come out bold.
struct OptionText {
  std::string_view name;
  std::string_view text;
  std::string_view section = {};  // of the page, which has more
};

inline constexpr std::array kOptionTexts{
    OptionText{"key",
               "It is 1 to 255 bytes of UTF-8 without control characters. All who use the same "
               "name with the same backend share one lock. Upper and lower case differ in every "
               "backend. Repeated, run and acquire take all these locks or none.",
               "SEVERAL LOCKS"},
    OptionText{"nonblock",
               "dlock tries once, and exits with status 75 (run, once: see --conflict-exit-code) "
               "if the lock is held. The same as --wait 0."},
    OptionText{"wait",
               "If the lock is not acquired within DURATION, dlock exits with status 75 (run, "
               "once: see --conflict-exit-code), or with 69 if the backend does not answer at that "
               "time. With 0, dlock tries once. See OUTAGES."},
    OptionText{
        "ttl",
        "While the command runs, or the PID of --while, dlock renews the lock at least three times "
        "in DURATION. A short DURATION frees the lock sooner after a machine has died. A long one "
        "survives longer network outages. From 1s to 24h. The file backend ignores --ttl. acquire "
        "without --while, and renew: the lock expires after DURATION unless dlock renew is called "
        "again, and only --ttl on the command line counts."},
    OptionText{
        "shared",
        "Any number of holders can share the lock. A holder without --shared excludes all others."},
    OptionText{"slots",
               "All holders must give the same N, from 1 to 1024. DLOCK_SLOT is the slot that the "
               "command has of the first --key, from 1 to N; no other holder of that key has it."},
    OptionText{"label",
               "For example the URL of a CI job. At most 1024 bytes without control characters."},
    OptionText{
        "kill-after",
        "The command can clean up during this time. When the lock is about to be lost, dlock sends "
        "SIGTERM this long before the lock ends, so DURATION must be less than half of --ttl. Of "
        "acquire: with --while only; the command is PID and its descendants."},
    OptionText{"on-lost",
               "term: send SIGTERM to the command and all that it started, and SIGKILL after "
               "--kill-after. kill: send SIGKILL at once. ignore: let the command go on without "
               "the lock, beside the next holder; only for a command that checks its fencing "
               "number wherever it writes. Of acquire: with --while only."},
    OptionText{"conflict-exit-code", "N is from 0 to 255."},
    OptionText{
        "leftovers",
        "It applies when the command ends by itself. ignore: leave them running, name them in a "
        "warning, and release the lock. wait: wait until they have ended, then release the lock. "
        "kill: send them SIGTERM, and SIGKILL after --kill-after, then release the lock."},
    OptionText{"max-hold",
               "dlock sends SIGTERM, and SIGKILL after --kill-after, releases the lock, and exits "
               "with status 124, as timeout(1) does. 0 means no limit."},
    OptionText{
        "min-hold",
        "If the command ends sooner, dlock exits with the command's status, and leaves the lock "
        "behind. It is released DURATION after the (last) lock was acquired, whatever --ttl is. "
        "Until then, list and show mark the command as ended. With --nonblock, or with a --wait "
        "that is shorter than DURATION, a job that all machines start at the same minute runs on "
        "only one of them, even if the job is quick and the clocks differ a little."},
    OptionText{"status-file",
               "A script can then tell dlock's own status 75 from that of a command that exits "
               "with 75. dlock replaces FILE in one step, at the end.",
               "STATUS FILE"},
    OptionText{"remember",
               "DURATION is counted from the end of COMMAND, and is from 1s to 3650d. When it is "
               "over, the next dlock once runs COMMAND again. For a KEY that names one job, as "
               "import-2026-11-22.",
               "DOING A JOB ONCE"},
    OptionText{"every",
               "Hours, days and weeks are those of UTC, and weeks begin on Monday. dlock takes the "
               "period from the clock of this machine when it starts, however long it waits then. "
               "Each period is a job of its own. That it is done is remembered for one week longer "
               "than the period lasts, for those who have waited since then.",
               "DOING A JOB ONCE"},
    OptionText{"done-exit-code", "N is from 0 to 255."},
    OptionText{"reset",
               "With --every, only the present period is forgotten. With --remember, only what is "
               "remembered without a period. With neither, everything that is remembered of KEY. A "
               "COMMAND that runs at this time is remembered all the same. The status is 1 if "
               "there was nothing to forget.",
               "DOING A JOB ONCE"},
    OptionText{"while",
               "PID must be an ancestor of dlock that dlock may signal. In a script, it is $$ "
               "(fish: $fish_pid). Two processes of dlock stay in the background, renew the lock, "
               "and release it when PID has ended. If the lock is lost, they end PID and its "
               "descendants: see --on-lost. Instead of --ttl.",
               "FOR SCRIPTS"},
    OptionText{"export",
               "For a shell to evaluate: lock=$(dlock acquire --export ...) || exit; eval "
               "\"$lock\". They set the variables that the command of dlock run finds. If dlock "
               "fails, it prints a statement that fails with the same status. SHELL is sh, which "
               "is the default and for all shells like it, or fish. Not together with --json.",
               "FOR SCRIPTS"},
    OptionText{"token-file",
               "FILE has a line for each --key, in the same order. Only the owner of FILE may have "
               "access to it (chmod 600).",
               "FOR SCRIPTS"},
    OptionText{"output",
               "The table has a line for each holder. With --json, the objects have only these "
               "fields. An unknown name is refused with a list of the columns.",
               "LOCKS AS A TABLE AND AS JSON"},
    OptionText{"done",
               "The table has a line for each key, or for each of its periods, that is remembered "
               "as done.",
               "DOING A JOB ONCE"},
    OptionText{"older-than",
               "A holder is included only if it is known to have held the lock for longer than "
               "DURATION. With --done: a job, if it was done longer ago than that."},
    OptionText{"id",
               "PREFIX is the id that \"dlock show\" prints, or the first of its digits. If "
               "another grant holds the lock by now, nothing is broken and the status is 1. "
               "Without --id, all holders that were shown lose the lock."},
    OptionText{"reason",
               "TEXT is shown in the final message of the holder's dlock and in its status file. "
               "At most 1024 bytes without control characters."},
    OptionText{
        "yes",
        "Without --yes, and without a terminal to ask on, nothing is broken and the status is 64."},
    OptionText{"name",
               "NAME is as a KEY: 1 to 255 bytes of UTF-8 without control characters. A counter "
               "and a lock of the same name have nothing to do with each other.",
               "NUMBERS"},
    OptionText{"snowflake",
               "All ids of one backend and one --prefix are different. They have at most 19 digits "
               "and last until 2094.",
               "NUMBERS"},
    OptionText{"count",
               "All are taken in one step. With --name, they follow each other without a gap. N is "
               "from 1 to 1000000."},
    OptionText{"schema",
               "Only the MySQL backends have tables. Use it when the user of dlock may not create "
               "them: an administrator runs the statements once, as in \"dlock backends --schema "
               "mysql | mariadb app\". With --prefix, the tables have that prefix. The statements "
               "do nothing if the tables exist."},
    OptionText{"backend",
               "NAME is a backend or a profile of the config file. A URL names the servers, too. "
               "\"dlock backends\" lists the backends."},
    OptionText{"server",
               "Use it if --backend is the name of a backend: a URL names its own servers. Without "
               "--server, most backends try this machine on the service's usual port. A server of "
               "redlock can also be a URL of its own. If one of them is a rediss:// URL, each must "
               "be a URL, so that none gets a password without TLS by mistake."},
    OptionText{"quiet",
               "Warnings are omitted, and the messages that dlock waits for the lock, or that a "
               "job was done before."},
    OptionText{"verbose",
               "Once: also print when the lock is acquired and released. Twice: also print a line "
               "for each exchange with the backend. In the environment and in the config file it "
               "is a number: 0, 1 or 2."},
    OptionText{"json",
               "Each message on stderr is a JSON object on a line of its own, {\"level\", "
               "\"message\"}. The output of list, show, id and backends on stdout is one JSON "
               "document; that of acquire and renew is one for each --key, on a line."},
    OptionText{"config",
               "FILE must exist; '' stands for none. Without --config, dlock reads "
               "$XDG_CONFIG_HOME/dlock/config.json (by default ~/.config/dlock/config.json) and "
               "/etc/dlock/config.json. If a key is in both, the first file counts."},
    OptionText{"password-file",
               "The password is the whole content of FILE, except for a newline at its end. Only "
               "the owner of FILE may have access to it (chmod 600)."},
    OptionText{
        "connect-timeout",
        "At the start: if too few servers answer within DURATION, dlock exits with status 69. If a "
        "server refuses the connection, dlock tries again until DURATION is over; with --nonblock "
        "it does not. Once the backend has answered, --wait is the limit: see OUTAGES."},
    OptionText{
        "prefix",
        "It separates the locks of dlock from other data: Redis keys begin with it (by default "
        "dlock:), the ZooKeeper nodes of locks are below it (/dlock), and the names of MySQL "
        "tables begin with it (dlock_). All who share locks must use the same prefix."},
    OptionText{"help", "\"dlock help COMMAND\" explains each of them."},
};

/// What the page says of a command; a blank line parts paragraphs.
struct CommandText {
  std::string_view name;
  std::string_view text;
};

inline constexpr std::array kCommandTexts{
    CommandText{
        "run",
        "Takes the lock KEY, runs COMMAND while holding it, and gives the lock up when COMMAND has "
        "ended. If somebody else holds the lock, dlock waits: for ever, unless --wait or "
        "--nonblock says otherwise.\n\nWhile COMMAND runs, dlock keeps the lock renewed. If the "
        "lock is lost all the same, because the network or the lock service failed for too long, "
        "dlock ends COMMAND and everything that COMMAND has started before anybody else can get "
        "the lock. If dlock itself is killed, it leaves nothing running (the man page names "
        "exceptions).\n\nCOMMAND gets its arguments byte by byte: there is no shell in between, "
        "unless you say sh -c. It finds the name of the lock in $DLOCK_KEY, the lock id in "
        "$DLOCK_TOKEN and the fencing number, which grows with each holder, in $DLOCK_FENCE; with "
        "several locks, a line for each in $DLOCK_KEYS, $DLOCK_TOKENS and $DLOCK_FENCES.\n\nIf "
        "COMMAND itself uses dlock run with the same KEY, that nested run borrows the lock: it "
        "starts its command at once and releases nothing. The lock is kept until both have ended."},
    CommandText{
        "once",
        "Runs COMMAND under the lock KEY, as dlock run does. If COMMAND exits with status 0, the "
        "backend remembers that the job KEY is done, for as long as --remember says, or for one "
        "hour, day or week (--every). Later runs of dlock once with the same KEY do not run "
        "COMMAND: they say when and by whom it was done, and exit with status 0. The machines must "
        "share a backend: the default one, file, is for this machine only.\n\nIf another dlock "
        "once runs COMMAND at this time, this one waits for it, unless --wait or --nonblock says "
        "otherwise. If that COMMAND fails, is killed, loses the lock or is ended by --max-hold, "
        "the job is not done, and the next waiter runs COMMAND.\n\nA COMMAND that is killed after "
        "it has had its effect is run again. It can store $DLOCK_ONCE, which is KEY, or KEY@PERIOD "
        "with --every, as a unique key in its own database. See DOING A JOB ONCE in the man "
        "page.\n\nThe lock is exclusive, and it must not be held by a dlock run around this one. "
        "With --reset there is no COMMAND. Exit status: 0, or that of --done-exit-code, if the job "
        "was done before; 69 also if COMMAND succeeded and the backend could not remember it; "
        "128+N also if dlock passed signal N on to COMMAND, which then exited with 0; otherwise as "
        "that of dlock run."},
    CommandText{
        "acquire",
        "Takes the lock KEY as dlock run does, prints the lock id, which dlock renew and dlock "
        "release need, and exits. The lock stays held. It is for scripts and CI jobs that cannot "
        "be wrapped by dlock run. Prefer dlock run where you can: it promises more. See FOR "
        "SCRIPTS in the man page.\n\nWith --ttl, the lock expires after DURATION unless dlock "
        "renew renews it. dlock release gives it up before that, also from another process or "
        "host. If a script needs longer than DURATION, nothing ends it before another holder gets "
        "the lock. Backends whose locks end with a process, a connection or a session need --while "
        "(\"dlock backends\": ENDS ON is not ttl).\n\nWith --while, dlock keeps the lock renewed "
        "until the process PID has ended or dlock release is called. If the lock is lost, dlock "
        "ends PID and its descendants.\n\nStandard output has the lock id, a line for each KEY. "
        "With --export, it has statements for a shell to evaluate; with --json, an object for each "
        "KEY. If these cannot be written, dlock releases the lock and exits with status 1. Exit "
        "status: 0 if the lock is held, 75 if it was not acquired, otherwise see EXIT STATUS."},
    CommandText{
        "renew",
        "Extends the lock KEY that dlock acquire --ttl has taken: it now expires after DURATION, "
        "by default that of acquire, counted from now. The lock id comes from --token-file, or "
        "from the environment that acquire --export has set.\n\nExit status: 0 if the lock is "
        "renewed; 79 if it is lost, because it has expired or was broken; 69 if the backend did "
        "not answer, so that the lock may be held still; 1 if the lock id is not one of acquire "
        "--ttl. The message says who holds the lock now. A lock that has expired is never taken "
        "again. With several keys, all are tried, and the largest status counts."},
    CommandText{
        "release",
        "Releases the lock KEY that dlock acquire has taken; the next waiter gets it. The lock id "
        "comes from --token-file, or from the environment that acquire --export has set. It can be "
        "called from another process, and from another host if the backend can be reached from "
        "there.\n\nExit status: 0 if the lock was released; 1 if this lock id does not hold it any "
        "more, or if it is one of dlock run. The message says who holds the lock now. With several "
        "keys, all are tried, and the largest status counts."},
    CommandText{
        "list",
        "Prints a line for each holder of each lock in the backend whose key begins with "
        "KEY-PREFIX; without KEY-PREFIX, of all locks. Locks that other programs took under the "
        "names of dlock's are among them. Listing never blocks a holder or a waiter."},
    CommandText{"show",
                "Prints who holds the lock KEY, since when, until when and with which fencing "
                "number, and who waits for it, in order. Exits with status 0 if the lock is held, "
                "and with 1 if it is free."},
    CommandText{"force-release",
                "Shows who holds the lock KEY and, if the answer is \"yes\", takes the lock away. "
                "The holder is told by whom and why (--reason), ends its command within a second "
                "or so, and exits with status 79. Whoever waits gets the lock at once, perhaps "
                "before that command has ended; with the backend file only when it has ended. A "
                "holder that got the lock after the question was asked keeps it.\n\nExits with "
                "status 0 if a grant was broken, and with 1 if there was none to break. A lock "
                "that another program took is taken from it, too, where it can be told apart from "
                "the next one; that program is not told. The backend file cannot do that."},
    CommandText{
        "id",
        "With --name, prints the next number of the counter NAME. Counters begin with 1. No number "
        "comes twice from the same backend, and later numbers are larger. A number that was taken "
        "and could not be printed is missing for ever.\n\nWith --snowflake, prints a 64-bit id "
        "that is made of the time, a worker number and a counter. No two are equal. Those of one "
        "call grow; those of later calls grow only roughly, with the time.\n\nThe numbers are "
        "unique among all that use the same backend. The default one, file, counts for each user "
        "of each host alone, or for each directory that is named. redlock has no counters. An id "
        "prints as a decimal number on a line of its own. See NUMBERS in the man page."},
    CommandText{"backends",
                "Prints a table of all backends: whether this dlock was built with it, which kinds "
                "of locks it has, and what becomes of a lock whose holder dies. With --schema "
                "instead the statements that make the tables which a backend needs."},
    CommandText{"help",
                "Without COMMAND, prints an overview. With it, prints what COMMAND --help prints."},
    CommandText{"version",
                "Prints the version of dlock on one line and the backends that it was built with "
                "on the next."},
};

inline constexpr std::string_view kDescription = R"(.SH DESCRIPTION
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
With
.BR "dlock run" ,
three things hold for every backend.
.IP \(bu 2
If the lock is lost, because the network or the lock service failed for too
long, the command and all that it started are dead before somebody else can get
the lock.
.IP \(bu 2
If dlock itself is killed, nothing that it started is left running (but see
.BR CAVEATS ).
.IP \(bu 2
The command gets its arguments, standard input and output, environment and
signals as if dlock were not there, and dlock exits with its status.
)";

inline constexpr std::string_view kChoosing = R"(.SH CHOOSING A BACKEND
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
database
.RB ( redis+unix:///PATH?db=N
is a Redis behind a unix socket,
.B rediss://
one behind TLS):
.nf
.in +2n
%URLS%.in -2n
.fi
A special character in a user, password, path or query is written as %XX: ? as %3F, @
as %40, a comma as %2C.
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

inline constexpr std::string_view kBackendsHead = R"(.SH BACKENDS
What each can do.
FENCING: each holder has a number that is larger than all before.
WAITERS: those who wait for a lock can be listed.
ENDS ON: what frees the lock of a holder that dies: its
.IR exit ,
at once; its
.IR session ,
when the server has not heard of it for a TTL; or its
.IR ttl ,
when that has run out.
ORDER: which waiter is next.
.IR none :
no order.
.IR kernel :
the kernel decides, with no guarantee.
REACH: whether the lock is seen by one
.I host
or by all that reach the server.
.PP
.in -3n
.TS
)";

inline constexpr std::string_view kColumns = R"(.SH LOCKS AS A TABLE AND AS JSON
.B dlock list
and
.B dlock show
are for people.
.B list
prints a table, a line for each holder.
A column is omitted if it has the usual value in every row, and times are rounded.
On a terminal, a host goes to its first dot, a command is without its directory, and
what is still too wide is cut, so that a line fits; hosts and process numbers come last.
MODE is empty for an exclusive lock.
EXPIRES has a value if no process renews the lock, or
.I late
if its holder has missed a renewal.
Below the table stands where that was.
.B show
prints one lock as a form, of which nothing is shortened; on a terminal also how its
job can be ended.
Control characters are shown as escapes, as in
.BR \ex1b .
With
.B \-\-output
the table has just the columns that are named.
.PP
With
.B \-\-json
all is printed as it is, in one JSON document:
.B list
prints an object with the URL of the
.B backend
and the array
.BR locks ,
.B show
one element of that array.
Fields may be added in later versions, but none changes its meaning.
What is not known is null;
.B waiters
is null if the backend cannot tell who waits.
Times are in milliseconds, or in UTC as in RFC 3339.
.PP
An id is shortened to its first 12 digits, since whoever has the whole of it can
release the lock.
.PP
The columns, and where they are in the JSON:
%COLUMNS%)";

inline constexpr std::string_view kConfig = R"(.SH CONFIG FILE
dlock reads
.I $XDG_CONFIG_HOME/dlock/config.json
(by default
.IR \(ti/.config/dlock/config.json )
and
.IR /etc/dlock/config.json .
If a key is in both, the first file counts.
A profile counts as a whole.
.BR servers ,
.B prefix
and
.B password_file
belong to one backend: they can stand in a profile only.
If
.B \-\-config
or
.B DLOCK_CONFIG
names a file, dlock reads only that file; it must exist.
.PP
A config file holds a JSON object.
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
(or
.BR shards ,
see
.BR SHARDING )
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
So is one that cannot be read, and a link that leads nowhere: it may name the server.
One in a directory that may not be searched, as in the HOME of root after its uid was
dropped, is passed over; a line says so, unless the backend and, for a server, the prefix
are named outside of it.
.B \-\-config ''
goes without any file.
The config file cannot set:
%NOT_IN_CONFIG%.
)";

inline constexpr std::string_view kEnvironment = R"(.SH ENVIRONMENT
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
have none: they belong to one lock.
.PP
If another variable begins with DLOCK_, dlock prints a line that names it, even with
.BR \-\-quiet .
.PP
The command inherits the environment of dlock, so that a nested run finds the same
servers.
So a password in
.B DLOCK_BACKEND
or
.B DLOCK_SERVERS
can be read by the command and by all that it starts.
To keep it out of the environment, put the URL into a profile of a private config
file, or the password into a private file that
.B DLOCK_PASSWORD_FILE
or
.B \-\-password\-file
names.
A command of the same user can still read these files.
A command that takes no lock itself can be run without the variable:
.PP
.nf
.in +4n
dlock run \-\-key job \-\- env \-u DLOCK_BACKEND command
.in -4n
.fi
.PP
In addition, the command finds these variables in its environment, and
.B "dlock acquire \-\-export"
sets them.
Only
.B "dlock renew"
and
.B "dlock release"
read them:
.TP
.B DLOCK_KEY
the name of the lock that it holds;
.TP
.B DLOCK_TOKEN
the id of this grant;
.TP
.B DLOCK_FENCE
the fencing number, where the backend has one: a number larger than that of every
earlier grant of this lock.
It is the last number plus one or, if that is larger, the time of the grant in
milliseconds since 1970.
The time is that of the server
.RB ( file :
of this machine;
.BR redlock :
the median of the servers that grant the lock).
So the numbers keep growing even if the backend has lost its data, unless its clock is
behind: see CAVEATS.
With
.B zookeeper
the number is not a time: see ZOOKEEPER.
Store it as a 64\-bit integer.
Pass it to the system that the command writes to.
That system must refuse a number that is smaller than one it has seen;
.TP
.B DLOCK_SLOT
with
.BR \-\-slots :
the number of the slot, from 1 to N.
No other holder has the same number at the same time; dlock takes the lowest free one;
.TP
.BR DLOCK_KEYS ", " DLOCK_TOKENS ", " DLOCK_FENCES
the same of each lock that the run has, a line for each
.BR \-\-key ,
in the order in which they were given; a line of
.B DLOCK_FENCES
is empty where there is no fencing number.
.BR DLOCK_KEY ,
.BR DLOCK_TOKEN ,
.B DLOCK_FENCE
and
.B DLOCK_SLOT
are those of line 1;
.TP
.B DLOCK_ONCE
set by
.B dlock once
only: the key or, with
.BR \-\-every ,
the key, an @ and the period, as in report@2026\-11\-26;
.TP
.B DLOCK_SUPERVISORS
the addresses at which nested runs find the holder: see
.BR "NESTED RUNS" .
)";

inline constexpr std::string_view kStatusFile = R"(.SH STATUS FILE
With
.B \-\-status\-file
dlock writes one JSON object when all is over:
.TP
.B outcome
.BR completed ,
.B done
(the job was done before, and the command was not run),
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
the lock (of several, the first
.BR \-\-key ),
where it is kept, and the fencing number;
.TP
.BR waited_ms ", " held_ms
how long it was waited for and held, in milliseconds;
.TP
.B reason
what went wrong, or by whom the job was done, in words.
.PP
What is not known is null.
The file appears under its name only when it is complete.
In a sticky directory, as
.I /tmp
is, an empty file has the name until then, so that no other user can take it: wait for a file that
is not empty
.RB (\(lq "test \-s FILE" \(rq).
.PP
A pipe, a terminal, /dev/null and a descriptor (/dev/stdout, /dev/fd/3) are not replaced, but written
to.
Somebody must have the pipe open for reading when dlock starts.
A file that is mounted by itself, as
.B "docker run \-v FILE:FILE"
does it, cannot be replaced: mount its directory.
Pipes, terminals and symbolic links must belong to you or to root.
If another user made them, or the file is another device, dlock refuses to start.
)";

inline constexpr std::string_view kSignals = R"(.SH SIGNALS AND TERMINAL
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
If dlock is suspended when the lock is granted to it, it releases the lock after
5 seconds and exits with status 75.
.BR ps (1)
shows it as
.RI \(lqlock\ supervisor\ for\ pid\  N \(rq,
so that killing dlock by its name leaves it to end the command.
A SIGTERM sent to it means the same as one sent to dlock.
)";

inline constexpr std::string_view kSeveral = R"(.SH SEVERAL LOCKS
With
.B \-\-key
given several times (at most %MOST_KEYS% times), dlock takes all these locks before
it starts the command, and releases all of them when the command has ended.
All are in one backend.
.BR \-\-shared ,
.B \-\-slots
and
.B \-\-ttl
apply to each,
.B \-\-wait
to all together.
.PP
dlock takes them one after the other, in the order of their bytes and not in the
order of the command line.
All runs do this, so two runs that are not nested never wait for each other.
Nested runs can: one that holds
.B b
and asks for
.B a
can wait for another that holds
.B a
and asks for
.BR b .
Let the outer run take both.
.PP
While dlock waits for one lock it holds, and renews, those before it: others wait
for these meanwhile, and
.B dlock list
names it as their holder.
If dlock loses one of them before it has them all, also by
.BR force\-release ,
it gives the others back, prints a warning, and takes all of them again, as long as
.B \-\-wait
is not over.
If one of the locks cannot be acquired, the exit status says why, the message says
which, and none is held.
.PP
If one of the locks is lost while the command runs,
.B \-\-on\-lost
counts as for a single lock, and the exit status is 79.
.PP
.B "dlock acquire"
takes several locks in the same way.
.PP
Each lock has a connection of its own.
If the server has no room for one more, dlock does not wait for that while it holds
other locks: it gives them back and exits with 69.
)";

inline constexpr std::string_view kNested = R"(.SH NESTED RUNS
A command that runs under a lock can use
.B dlock run
with the same key and the same backend again, for example in a script that also
works alone.
Such a nested run borrows the lock from the outer run: it starts its command at
once and releases nothing.
Its command has the same
.B DLOCK_TOKEN
and
.BR DLOCK_FENCE .
Options are not handed down: a nested run with another backend or prefix takes
another lock.
.PP
Several nested runs of one outer run borrow the lock side by side and may overlap.
A nested run that asks for another mode than that of the lock is refused with
status 64, since it would wait for itself.
.PP
If the outer run loses the lock, the nested run ends its command and exits with
79.
If the command of the outer run ends by itself while a nested run is still
running, the outer run returns, and its supervisor (in
.BR ps (1):
.RI \(lqlock\ supervisor\ for\ pid\  N \(rq)
stays and keeps the lock until the nested run has ended.
With
.B \-\-leftovers wait
the outer run waits instead (but not for a
.BR "dlock acquire \-\-while" ,
whose script may be around it); with
.B kill
it ends the nested run.
.B \-\-max\-hold
of the outer run counts from the grant, also after the outer run has returned:
the nested run then ends its command and exits with 79, unless it has
.BR "\-\-on\-lost ignore" .
.PP
A run is nested if it is a descendant of the outer run's command, runs as the
user of the outer run or as root, and can connect to the address in
.BR DLOCK_SUPERVISORS .
If dlock cannot tell that, since
.I /proc
hides one of the processes (hidepid=, ProtectProc=: from a user also his own dlock, if that knows a
password), or if the outer run does not answer, is not allowed to
create Unix sockets, or the record of the lock was overwritten, the nested run
fails with status 69.
.PP
Any other run waits for the lock like everybody else.
This includes a process that only has a copy of the environment, such as a job of
.BR at (1)
or a window of
.BR tmux (1).
It also includes some parts of a job, which would wait for their own job for ever:
what runs as another user than root, what runs in a network namespace of its own
or on another machine, and what
.BR sudo (8)
starts without
.B DLOCK_SUPERVISORS
(keep it with
.IR env_keep ).
Give these another key, or
.B \-\-wait
or
.BR \-\-nonblock ,
so that they fail.
)";

inline constexpr std::string_view kNumbers = R"(.SH NUMBERS
.B "dlock id"
prints numbers that no other process gets, on any machine that uses the same
backend, location and
.BR \-\-prefix .
With the backend
.B file
that is this machine and, if no directory is named, this user: a counter of several
users needs a directory that they share, and name.
.B redlock
has none, since a majority of servers cannot keep a number for ever; in a profile with
.B shards
there are none either, since a counter would begin anew when the list of shards
changes.
.PP
Each call takes its numbers in one step, which is durable before anything is
printed.
If dlock is killed, or if the answer of the server is lost, the numbers of that call
are missing for ever.
None is printed twice.
.PP
.nf
.in +4n
invoice=$(dlock id \-\-name invoice) || exit
dlock id \-\-name order \-\-count 500 >numbers
dlock id \-\-snowflake
.in -4n
.fi
.TP
.B Counters.
.B "\-\-name NAME"
takes the next numbers of the counter NAME: 1, 2, 3 and so on, up to
9223372036854775807 (2^63\-1).
After that, the status is 64.
A later call gets larger numbers than an earlier one that has ended.
With
.B \-\-count
the numbers of one call follow each other without a gap.
A counter is never removed.
.TP
.B Snowflake ids
have 63 bits: from the top 41 bits of milliseconds since 2025\-01\-01 UTC (until
2094), 10 bits of a worker number, and 12 bits of a counter.
They are integers that fit a signed column of 64 bits, and sort roughly by time.
The ids of one call grow.
.IP
There are no worker numbers to configure: the backend stores the end of the last window
of each.
A call leases the window that starts first, by the clock of the backend, and long
enough for its ids.
No two windows of a worker overlap, so a process that was stopped, or a clock that was
set back, repeats no id.
If the clock is set back, windows can start later than it says.
A window that would start more than 5 seconds ahead of the clock is refused with status
75: try again later.
.TP
.B JSON.
.B \-\-json
prints an object with
.B backend
(a URL),
.B name
(null for snowflake ids) and the array
.BR ids .
The numbers are strings, because many programs read JSON numbers as floating point,
which is exact up to 2^53 only.
.TP
.B Exit statuses
are those of the other commands: 0, 64, 69, 77 and 78; 75 as above; and 1 if the numbers
cannot be written to standard output.
.TP
.B What is stored.
.BR file :
a file for each counter in
.I \(tiids
(see FILE).
.BR redis :
.I {dlock:NAME}:number
(NAME has %25 for %, %7B for { and %7D for }) and
.IR {dlock:}:workers .
.BR zookeeper :
persistent nodes below
.IR /dlock/%ids .
.BR mysql :
the table
.IR dlock_ids ,
which the three backends share, so that they share the counters, too.
.TP
.B Loss of data.
A backend that loses data, or is set back to an older state, repeats numbers.
Examples are a Redis server that restarts without
.B "appendonly yes"
and
.BR "appendfsync always" ,
or that drops keys when it is out of memory
.RB ( maxmemory\-policy );
a failover to a replica that is behind; a backup that is restored; and MySQL with
.B innodb_flush_log_at_trx_commit
other than 1.
After such an event, skip the numbers that are in use, before any process takes one:
.BR "dlock id \-\-name NAME \-\-count 500000 >/dev/null" .
For snowflake ids nothing is to be done: the clock has passed the lost windows, unless
one was ahead of it.
)";

inline constexpr std::string_view kFile = R"(.SH FILE
The locks of the backend
.B file
are between the processes of one machine.
The kernel keeps them
.RB ( flock (2)),
so they need no lease, and
.B \-\-ttl
has no effect.
A lock is free as soon as dlock has released it, or when both of its processes have ended.
.PP
.B The directory
is
.I /run/dlock
for root and
.I /tmp/dlock\-UID
for another user, whatever the environment.
dlock creates it, and refuses it if it belongs to somebody else.
So a cron job and a login shell of one user exclude each other; two users do not share
locks.
Processes that do not see the same
.I /tmp
(PrivateTmp=yes in a systemd unit, containers) do not exclude each other either: name a directory
that all of them see.
To look at the locks of a user, root runs
.BR "runuser \-u USER \-\- dlock list" .
.PP
dlock refuses a directory that another user could rename and replace, since two jobs could then have
one lock.
All directories that its path leads through must belong to root, to you or, if the lock directory is
shared, to its owner.
None of them may be writable by others, unless it is sticky, as
.I /tmp
is, or only those may write to it who may delete each lock file anyway.
.PP
.B For several users
create a directory, and name it in the URL:
.nf
.in +2n
# install \-d \-m 2770 \-g jobs /var/lock/jobs
$ dlock run \-b file:///var/lock/jobs \-k job \-\- ./job
.in -2n
.fi
You can name a directory that its group may write to, or everybody (then with mode 1777, as
.I /tmp
has it).
All who can write to it share its locks.
An access list
.RB ( setfacl )
by which others than its group may write is refused:
they could not use the files of the group, nor the group theirs.
dlock gives its files the group of the directory, and a mode that lets the others use them.
.I /var/lock
is empty after a boot on most systems; let
.BR systemd\-tmpfiles (8)
create the directory, or use another place.
.PP
Everybody who shares a directory must be trusted not to disturb the others.
They can hold a lock for ever, force\-release it, and see who holds it: user, host, pid, command
without its arguments, label.
Whoever can delete a lock file can let two holders in: in a directory with mode 2770 each of its
users, in one with mode 1777 the owner of the file, the owner of the directory, and root.
They cannot use the directory to make the dlock of another user read or write other files: dlock
follows no symbolic links there, and uses no file with hard links.
.PP
.B In a pod
an emptyDir volume is writable by everybody and not sticky.
Best an init container of root says
.BR "chmod 1777 DIR" ,
or there is a persistent volume, which fsGroup gives to one group; else
.RB \(lq file:///DIR?trust=all \(rq
takes the directory as it is: all who may write to it, or to those above it, can let two holders in.
.PP
.B Files.
A lock has the name of its key; a character other than letters, digits and
.RB \(dq _.\- \(dq
becomes %XX.
This file can be locked by
.BR flock (1),
too.
It holds the last fencing number.
Other files of the lock have a name with a tilde: KEY~w is a folder with one file for each process
that holds the lock or waits for it.
A process removes its own file.
The next
.B dlock list
or
.B dlock show
removes what a process that was killed has left, and empty folders (in a directory with mode 1777,
only if its owner or root runs it).
The other files stay, since others may be about to lock them.
.PP
The counters of
.B dlock id
and the marks of
.B dlock once
(a mark says that the job of a key is done) are kept over a boot.
They are in the folders
.I \(tiids
and
.I \(tidone
of the directory that is named; with the default directory, of
.I /var/lib/dlock
for root, and of
.I \(ti/.local/state/dlock
for another user.
That is also so if the default directory is named, by whatever path.
It is not so if its group or everybody may write to it: then they are in the directory itself.
So if you begin to share it, or no longer do, counters begin again, and jobs can be done again.
.PP
If the home is on a network file system, all machines with this home share those counters and
marks, but each machine has locks of its own, so several can do a job at the same time;
.B dlock once
warns of that.
The same holds, without a warning, for services with a
.I /tmp
of their own (PrivateTmp= of systemd).
Name a directory, or use a server.
.PP
.B dlock once
removes some of the marks that have expired, and of the empty folders, before it runs its command.
Marks expire by the wall clock: if it is set forward, they expire earlier.
A mark that was made while the clock was years ahead lasts for years:
.B "dlock list \-\-done"
shows that, and
.B "dlock once \-\-reset"
forgets it.
In a directory with mode 1777 a mark can be removed only by its owner, the owner of its folder, and
root.
.PP
.B dlock force\-release
asks the holder to end its command.
The lock is free only when that command has ended, so nobody runs beside it.
dlock force\-release waits for that until
.B \-\-connect\-timeout
is over.
If the holder is still ending its command then, the status is 0, and the lock is not free yet.
If it has not answered, since one of its processes is stopped, the status is 69, and it has the lock
still; it ends its command when it runs again.
A lock that
.BR flock (1)
holds cannot be broken.
)";

inline constexpr std::string_view kCaveats = R"(.SH CAVEATS
.TP
.B Both processes of dlock killed at once.
Each of the two processes of dlock ends the command when the other is killed.
If both are killed in the same instant, the kernel still kills the command
itself (see PR_SET_PDEATHSIG in
.BR prctl (2)),
but not what the command has started.
This remains and runs without the lock: find it with
.BR ps (1)
and end it before you start the job again.
.TP
.B A process that cannot be killed.
A process that the command has started can run as another user (sudo), or hang in
the kernel (state D in
.BR ps (1)).
dlock names it, and does not exit before it has ended.
The lock is kept for as long; but if the lease was lost, another holder can start
beside it.
.TP
.B A machine that is frozen as a whole.
When a virtual machine is paused for longer than the TTL, its lock passes on,
and dlock can only end the command after the thaw: its first act is to look at
the clock.
What the command writes in between can be refused by whoever checks
.BR DLOCK_FENCE .
.TP
.B \-\-on\-lost ignore
gives up the promise that no two commands run under one lock.
Use it only if the fencing number is checked wherever the command writes.
.TP
.B NFS.
The file backend is meant for a local file system.
On NFS, locks depend on the server and on the mount options, and can be lost
without a sign.
.TP
.B Fencing numbers after a loss of data.
The backend stores the last number of each lock.
If it has lost that number, the next one is the time by its clock.
If that clock is behind the lost number, the next one is smaller than an earlier one.
This can happen if the clock was set back, if the clock of a standby is behind that of
the primary that failed, or if a machine without a battery\-backed clock was
rebooted.
Keep the clocks of all servers synchronized (NTP).
On a machine without a battery\-backed clock, start dlock only after its clock is
synchronized
.RB ( After=time\-sync.target ).
This does not apply to
.BR zookeeper .
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
Never remove the files of a lock that is held.
Its holder loses the lock: dlock ends the command, with status 79.
But another process can get the lock at once, while that command is still being ended.
.TP
.B \-\-min\-hold and nested runs
can leave a process behind that keeps the lock: with a backend whose locks end
with a process or a session (file, zookeeper), and while a nested run uses the lock.
A service manager or a container that ends everything when dlock exits ends that
process, too, and the lock with it.
Where a lock has a TTL, the server alone keeps it for
.BR \-\-min\-hold .
)";

inline constexpr std::string_view kScripts = R"roff(.SH FOR SCRIPTS
.B "dlock run"
promises the most: wrap the command if you can.
For a script that cannot be wrapped, and for a CI job of several steps,
.B "dlock acquire"
takes a lock that stays held after dlock has exited.
It prints the lock id, the secret that
.B "dlock renew"
and
.B "dlock release"
need (not the fencing number, which is a number).
.PP
.nf
.in +4n
lock=$(dlock acquire \-\-export \-k deploy \-\-while $$) || exit
eval "$lock"
\&./deploy.sh
.in -4n
.fi
.SS "With \-\-while"
Two processes of dlock stay in the background until PID has ended.
They renew the lock, and release it then.
PID is usually
.BR $$ ,
the script itself.
It must be an ancestor of dlock, in the same pid namespace.
dlock could not end process 1 of a container: start that with an init
.RB ( "docker run \-\-init" ).
Where the container ends with the script, so do the two processes, and on a server the lock
stays until its
.B \-\-ttl
is over.
So let the script release it:
.PP
.nf
.in +4n
lock=$(dlock acquire \-\-export \-k deploy \-\-while $$) || exit
eval "$lock"
trap "dlock release \-q \-k deploy" EXIT
\&./deploy.sh
.in -4n
.fi
.PP
If the lock is lost, dlock sends SIGTERM to PID and its descendants, and SIGKILL after
.BR \-\-kill\-after ,
before another holder can get the lock.
The same happens if one of the two processes is killed.
The script dies of the signal (its status is 143, not 79);
.B "trap ... TERM"
can clean up.
dlock writes the reason to standard error.
.PP
Do not use
.B "\-\-while $$"
at a prompt: if the lock is lost or force\-released, dlock ends your login shell and all that it
started.
.PP
.B "dlock run"
promises more:
.IP \(bu 2
Processes that outlive PID, such as jobs in the background, run on after the lock is released.
The same holds for a command in the foreground if a signal kills the script alone.
End the script with
.BR wait ,
or with
.B exec
and the last command.
.IP \(bu 2
A daemon (a process whose parent has ended) is not found, and not ended if the lock is lost.
.IP \(bu 2
If both processes of dlock are killed at the same time, nothing ends the script.
.PP
In a subshell,
.B $$
is still the main shell.
The lock is then held until that has ended.
For the subshell alone, take its pid before the command substitution, which is a process of
its own:
.PP
.nf
.in +4n
(
  self=$BASHPID                  # bash
  lock=$(dlock acquire \-\-export \-k deploy \-\-while "$self") || exit
  eval "$lock"
  \&./deploy.sh
)
.in -4n
.fi
.SS "With \-\-ttl"
The lock is a lease of fixed length: no process keeps it, and it expires when the
DURATION is over.
This suits steps of a CI job, which have no process in common.
Only some backends have such leases:
.B "dlock backends"
shows
.I ttl
under ENDS ON: redis, redlock, mysql and mysql\-version.
The others need
.BR \-\-while ,
the default one, file, among them.
So here, and in the recipes for CI services, DLOCK_BACKEND is set, for example to
redis://redis\-1/0.
.PP
.nf
.in +4n
lock=$(dlock acquire \-\-export \-k deploy \-\-ttl 10m) || exit
eval "$lock"
trap "dlock release \-k deploy" EXIT
\&./build.sh
dlock renew \-k deploy || exit    # 10 minutes from now
\&./deploy.sh
.in -4n
.fi
.PP
If the script takes longer than the DURATION, nothing ends it, and another holder gets the
lock while it runs.
Choose a DURATION that is longer than the longest time between two renewals, and stop if
.B "dlock renew"
exits with 79.
69 means that the backend did not answer: the lock is held until it expires, so try again.
A script that is suspended can still go on after the lease has expired.
So give DLOCK_FENCE to what the script writes to, as described under ENVIRONMENT.
.SS "The lock id"
.B "dlock renew"
and
.B "dlock release"
take the lock id from
.B DLOCK_TOKEN
if
.B DLOCK_KEY
is the key, or else from the line of
.B DLOCK_TOKENS
that belongs to the key's line in
.BR DLOCK_KEYS .
.B "dlock acquire \-\-export"
sets these variables.
Otherwise name a file with
.BR \-\-token\-file .
.PP
They can run in another process, and on another host that reaches the backend.
A lock that is kept with
.B \-\-while
can be released in the same way; the script is not ended then.
.SS "When dlock acquire fails"
Its exit status is that of
.BR "lock=$(dlock acquire ...)" ,
so
.B "|| exit"
or
.B "set \-e"
ends the script.
.B "export lock=$(...)"
and
.B "local lock=$(...)"
hide the status.
With
.B \-\-export
a failure also prints a statement that fails with the same status, such as
.BR "sh \-c \(aqexit 75\(aq" .
So under
.BR "set \-e" ,
and only there, this works, too:
.PP
.nf
.in +4n
eval "$(dlock acquire \-\-export \-k deploy \-\-ttl 10m)"
.in -4n
.fi
.PP
But if dlock is not installed, or killed with SIGKILL, it prints nothing, and the script goes
on without the lock.
.SS "dlock inside the script"
A
.B "dlock run"
inside the script does not borrow the lock, as it would inside another run.
With the same key, it waits for its own script, for ever; so does a second
.BR "dlock acquire" .
The script has the lock already: call the command without
.BR "dlock run" ,
or take another key.
The other way round, a
.B "dlock acquire"
inside a
.B "dlock run"
with the same key is refused with status 64.
.SS fish
.nf
.in +4n
set lock (dlock acquire \-\-export=fish \-k deploy \-\-while $fish_pid); or exit
eval $lock
.in -4n
.fi
.SS "GitHub Actions"
.nf
.in +4n
\- run: |
    token=$(dlock acquire \-k deploy \-\-ttl 30m \-\-wait 1h)
    echo "::add\-mask::$token"
    echo "DLOCK_KEY=deploy" >>"$GITHUB_ENV"
    echo "DLOCK_TOKEN=$token" >>"$GITHUB_ENV"
\- run: ./deploy.sh
\- if: always() && env.DLOCK_TOKEN != \(aq\(aq
  run: dlock release \-k deploy
.in -4n
.fi
.SS "GitLab CI"
.nf
.in +4n
script:
  \- (umask 077; dlock acquire \-k deploy \-\-ttl 30m \-\-wait 1h >.lock\-token)
  \- ./deploy.sh
after_script:
  \- test ! \-s .lock\-token || dlock release \-k deploy \-\-token\-file .lock\-token
.in -4n
.fi
.SS Jenkins
.nf
.in +4n
environment { DLOCK_KEY = \(aqdeploy\(aq }
stages { stage(\(aqdeploy\(aq) { steps {
  script {
    env.DLOCK_TOKEN = sh(returnStdout: true,
      script: \(aqdlock acquire \-k deploy \-\-ttl 30m \-\-wait 1h\(aq).trim()
  }
  sh \(aq./deploy.sh\(aq
} } }
post { always { script {
  if (env.DLOCK_TOKEN) { sh \(aqdlock release \-k deploy\(aq }
} } }
.in -4n
.fi
)roff";

inline constexpr std::string_view kOnce = R"(.SH DOING A JOB ONCE
.B "dlock once"
is for a job that is started on all machines and is to be done by one of them: a
nightly import, a mail to all customers, a migration.
The machines must share a backend, which
.B redlock
cannot be: what a majority of its servers remembers may be known to a minority after
a restart.
.PP
.nf
.in +4n
# crontab of each machine: the report once a day
17 3 * * * /usr/local/bin/dlock once \-q \-w 2h \-b redis://db/0 \-k report \-\-every 1d \-\- ./report.sh
# in each deployment: this migration once
dlock once \-b redis://db/0 \-k migrate\-42 \-\-remember 3650d \-\- ./migrate.sh 42
.in -4n
.fi
.PP
The first to come gets the lock and runs the command.
If the command exits with status 0, the backend remembers that the job is done, before
anybody else can get the lock.
The others wait until it is done, and exit with status 0, or that of
.BR \-\-done\-exit\-code ,
without running the command.
Those that come later exit so at once.
.PP
The job is not done if the command fails, if it is ended by a signal or by
.BR \-\-max\-hold ,
if the lock is lost, or if the machine dies.
Nor is it if dlock has passed a SIGTERM, SIGINT, SIGHUP or SIGQUIT on to the command,
even if the command ignores that and exits with 0.
Then the next waiter runs the command, and so on, one at a time, until one succeeds.
With
.B \-\-nonblock
or
.B \-\-wait
a dlock that gives up exits with status 75, or that of
.BR \-\-conflict\-exit\-code :
at that time, the job was not done.
Nested runs of the same key are waited for.
.TP
.B At least once.
A command that is killed after it has had its effect is run again, and so is one whose
machine dies then.
If the command succeeds and the backend does not answer, dlock tries until the lock
expires
.RB ( \-\-ttl );
then it says so and exits with status 69, and the command may be run again.
A fencing number cannot prevent that.
Let the command find out itself what it has done already, or have it store
.B DLOCK_ONCE
as a unique key in the transaction that has the effect.
With
.B \-\-remember
use no key that ends in an @ and a period.
.TP
.B Periods
look like 2026\-11\-26T09, 2026\-11\-26 and 2026\-W48, and are those of UTC; cron goes
by local time.
dlock takes the period from the clock of this machine when it starts.
A machine whose clock is a second behind can do the job of the period before, so
choose a minute that is not near the beginning of a period.
Jobs of different periods have one lock: they do not run at the same time.
That a job is done is remembered for one week longer than the period lasts.
A dlock that has waited for longer than that, or than
.BR \-\-remember ,
does the job again.
.TP
.B Seeing and forgetting.
.B "dlock list \-\-done"
lists the jobs that are remembered as done.
.B "dlock show KEY"
shows KEY without a period and of the present hour, day and week.
.B \-\-reset
forgets:
.B "dlock once \-k report \-\-every 1d \-\-reset"
the job of today,
.B "dlock once \-k report \-\-reset"
all of this key.
.TP
.B What is stored.
.BR file :
a file for each in
.IR \(tidone ,
beside the counters (see FILE).
By default it is remembered for this user on this machine alone.
.BR redis :
.I {dlock:KEY}:done:PERIOD
(without a period, the name ends with the colon).
.BR zookeeper :
persistent nodes below
.IR /dlock/%done .
.BR mysql :
the table
.IR dlock_done ;
each of the three backends has rows of its own.
.TP
.B Loss of data.
A backend that loses data forgets what was done, and the job is done again.
.B dlock once
warns if a Redis server that lets it read its configuration saves nothing to disk, or
drops keys when it is out of memory
.RB ( maxmemory
with any
.B maxmemory\-policy
but
.BR noeviction ),
and if the directory of
.B file
is in memory; with
.B \-q
it does not.
In a profile with
.B shards
a key that is in another shard once the list has changed is not remembered there.
.PP
Without
.BR \-\-json ,
.B "list \-\-done"
leaves out what is of no use to people.
With it, it prints an object with the URL of the
.B backend
and the array
.BR done ;
the JSON of
.B show
has that array, too, and null if the backend did not tell.
Its elements have these fields:
%MARKS%)";

inline constexpr std::string_view kOutages = R"(.SH OUTAGES
When dlock starts, it tries to reach the backend until
.B \-\-connect\-timeout
or
.B \-\-wait
is over, whichever is shorter.
A server that refuses the connection, a name that does not resolve and a server that is
loading its data are tried again until then.
With
.B \-\-nonblock
or
.BR "\-\-wait 0" ,
dlock tries once; if the server is silent, this takes
.BR \-\-connect\-timeout .
If the backend is not reached, the status is 69.
dlock never tries again after a wrong password or a missing right (status 77), nor if
the database does not exist (status 64).
.PP
Once the backend has answered, a waiter tries again until
.B \-\-wait
is over, or for ever without
.BR \-\-wait .
A server that refuses a connection because its limit of connections is reached has
answered, also at the start.
This covers a restart, a failover and a broken network, too.
If the first new try fails too, dlock prints a warning, and when the backend answers
again, a second message.
If the backend fails again within 10 seconds after it answered, dlock prints the next
warning only when the new failure has lasted for 10 seconds.
With
.B \-\-quiet
there is no message: set a limit with
.BR \-\-wait .
.PP
The time between two tries is random and grows to 2 seconds at most, so that
many waiters do not come back at one instant.
A waiter may lose its place in the queue during an outage.
If the backend does not answer when
.B \-\-wait
is over, the status is 69 instead of 75, also with
.BR \-\-conflict\-exit\-code .
In that case dlock may exit some seconds after
.BR \-\-wait :
it first lets its last request finish, and leaves the queue.
.PP
A holder keeps trying to renew while its lease lasts (but
.B mysql\-row
does not survive the loss of its connection).
It prints a warning when a renewal fails, and a message when one succeeds again.
If the lease is about to expire, dlock ends the command and exits with 79.
A longer
.B \-\-ttl
lets the command survive a longer outage, but keeps the lock longer after a machine has
failed.
.PP
.BR list ,
.B show
and
.B force\-release
try once, for at most
.BR \-\-connect\-timeout .
If the server does not answer, or with
.B redlock
fewer than a majority do, they exit with 69.
For several shards see
.BR SHARDING .
)";

inline constexpr std::string_view kRedis = R"(.SH REDIS
.SS What is stored
A lock is one key, the prefix (by default
.BR dlock: )
and the key of the lock, with the id of its holder and the TTL for an expiry:
what
.B SET NX PX
makes.
So it excludes, and is excluded by, the locks of redis\-py, node\-redlock,
redsync, Spring, ShedLock and others on the same name; for a name of theirs say
.BR "\-\-prefix \(aq\(aq" .
Anything else that stands under that name counts as a lock of another program:
it is waited for, shown, and taken away by
.B force\-release
only.
By what they leave there, redis\-py, redlock\-py, node\-redlock, redsync,
Redisson, Symfony and ShedLock are known by name; of Redisson also the hold
count is shown, and it is woken when its lock is broken.
With
.B \-\-shared
and
.B \-\-slots
it is a sorted set, which only dlock understands.
.PP
For a lock
.I K
there are also
.IR {K}:fence ,
the last fencing number, which expires a week after the time in that number,
.I {K}:owner
and
.IR {K}:queue ,
which expire, and for each waiter
.IR {K}:waiter:ID .
.I {K}:revoked:ID
says for a minute why a lock was taken away, or for twenty that a request of that
ID was given up without an answer, so that it gets nothing if it comes late.
.I {K}:done:PERIOD
is what
.B dlock once
remembers, until it is forgotten.
All of them are in one slot of a cluster, but dlock talks to one server and does
not follow to another.
Redis 5 or later is needed, and 6 to be woken by the release of another
program's lock; before, dlock looks twice a second.
Without SUBSCRIBE, as behind Envoy and twemproxy, there is no queue: each waiter asks
twice a second, and a force\-release is noticed at the next renewal; without PUBLISH the
first waiters ask; without SCAN there is no list.
EVALSHA, CLIENT and PUBSUB can be missing.
.PP
A waiter is called when it is its turn.
One that does not come, because it is stopped or its machine has vanished, holds
up the others for half a second, and any number of them for ten seconds at most:
every seven seconds each waiter looks for itself, which costs the server four
small commands.
.PP
If somebody deletes
.IR K ,
or overwrites it, the server tells an exclusive holder at once, which ends its
command with status 79; in the first second, with other modes, and before Redis 6
it hears at its next renewal.
.B force\-release
is the better way: it tells every holder, and why.
.SS TLS
.B rediss://
verifies the certificate of the server: that it is trusted, valid, and for the
host that is named.
.RB \(lq ?cacert=FILE \(rq
at the end of the URL names a CA of your own instead of those of the system,
.RB \(lq ?cert=FILE&key=FILE \(rq
a certificate to show to the server.
The paths are absolute, the files PEM, the key without a passphrase.
A key that other users can read is refused.
Nothing turns the verification off.
.SS Rights
A user that can do no more than dlock needs:
.PP
.nf
.in +2n
ACL SETUSER dlock on >PASSWORD resetkeys resetchannels \-@all
    \(ti{dlock:* \(tidlock:* &{dlock:* &__redis__:invalidate
    +eval +evalsha +get +set +del +incr +incrby +exists +type +time +pttl
    +pexpire +pexpireat +getrange +zadd +zcard +zrange +zrangebyscore +zrank +zrem
    +zremrangebyscore +zscore +hget +hset +hdel +hexists +hscan +publish
    +subscribe +pubsub|numsub +client|id +client|tracking +scan +select
    +config|get
.in -2n
.fi
.PP
.B config|get
is for the warning of
.B dlock once
only.
A key with a hash tag of its own, such as
.IR {app}:job ,
needs
.B \(ti{app}*
and
.B &{app}*
as well.
.SS What a single server cannot promise
.TP
.B Failover.
A replica gets a lock some time after it was granted.
If it becomes the master before, the lock can be granted twice.
The
.B redlock
backend is for that.
.TP
.B A restart without its data
frees all locks; fencing numbers keep growing (see CAVEATS).
The holders notice at their next renewal, and end their commands, but others may
have the lock by then.
With
.B "appendonly yes"
and
.B "appendfsync always"
nothing is lost.
.TP
.B Eviction.
With a
.B maxmemory\-policy
other than
.B noeviction
a server that is out of memory can drop a lock.
.TP
.B The clock of the server.
If it is set forward, locks end early.
)";

inline constexpr std::string_view kRedlock = R"(.SH REDLOCK
A lock is held once a majority of independent Redis servers has granted it: 2 of
3, 3 of 5.
It survives the failure of the others.
Replicas and the nodes of one cluster are not independent; masters that know
nothing of one another are.
Each server stores what
.B REDIS
describes, and there the same rights are needed.
.PP
The servers are named in the URL or by
.BR \-\-server ,
there is no default.
Where they differ in user, password, database or TLS, each can have a URL of its
own in the variable
.BR DLOCK_SERVERS ,
or under
.B servers
in the config file:
.PP
.nf
.in +2n
DLOCK_BACKEND=redlock
DLOCK_SERVERS=redis://a:pw1@r1,rediss://b:pw2@r2/3,redis://r3:6380
.in -2n
.fi
.PP
If one of them is a
.B rediss://
URL, each must be a URL: a server without a scheme would get the password without TLS,
and is refused.
.PP
All who share a lock must name the same servers, by the same names, in any order.
Who meets a holder that has another list is told; where no server is in both, nobody
can tell.
They wait in a queue at one of the servers, the first by its name; if that stops
answering without closing its connections, they notice it after ten seconds at
most.
A replica does not count, and a warning says so.
A server that is listed twice is refused; if it answers so late that the lock is
held without it, it counts once, and a warning says so when the lock is renewed.
.PP
All servers are asked at once, and each has 5 % of the TTL, at most 200 ms, to
answer; the first answers that decide are enough.
If too few answer, dlock tries again: see OUTAGES.
When it gives up, the status is 69, and the message names the servers that did not
answer.
A holder that cannot renew the lock with a majority ends its command before the
lock is over, with status 79.
With
.B \-\-slots
each number is an exclusive lock, which a majority of the servers must grant.
So no more than
.I N
hold the lock at once, and the failure of a minority does no harm.
.PP
The fencing number and the number are agreed on in a second round, so that the first
grows whichever majority grants the lock.
It is at least the median of the clocks of the servers that grant the lock, so one
clock that is wrong does no harm.
.SS What it assumes
.TP
.B Clocks
of servers and clients run equally fast to one percent, and nobody sets the
clock of a majority of the servers forward.
.TP
.B A server that forgets its locks
and comes back at once can grant a lock a second time.
Let it save every write
.RB ( appendonly " yes, " appendfsync " always),"
or stay away for one TTL.
.IP
If a server comes back without its data, the holder stores its lock there again at its
next renewal, with the same fencing number.
So you can restart one server after another while a job runs: wait a third of the TTL
between two restarts.
This works in the first week after the grant.
After that, a server that comes back without its data counts as failed while the job
runs.
)";

inline constexpr std::string_view kZookeeper = R"(.SH ZOOKEEPER
.SS What is stored
A lock is a node below the root
.RB ( \-\-prefix ,
by default
.IR /dlock ),
called like the key, with each character but letters, digits,
.BR \- ,
.B _
and dots that are not the first as %XX.
Who wants the lock makes an ephemeral sequential node in it, and the lowest
number has it: a queue in which each waits for one event, and in which the
servers themselves pass on the lock of a holder that is gone.
A holder with
.B \-\-slots
has a second node there, called
.I slot\-K
for its number K.
After a
.B force\-release
it keeps that number until its command has ended, or its session is over, so that
no other command starts with the same number before.
The path of the URL is a chroot and must exist; what is below is created, as
container nodes, which the servers remove when they are empty.
.PP
The nodes are called as those of Apache Curator's InterProcessMutex, which
excludes dlock and is excluded by it on the same node, and so are its
InterProcessReadWriteLock with
.I ?style=curator\-rw
in the URL, and the locks of kazoo with
.IR ?style=kazoo .
dlock itself recognizes the nodes of all three with any style.
For a lock of theirs at
.I /app/locks/job
say
.BR "\-\-prefix /app/locks \-k job" .
.SS The session
.B \-\-ttl
is the timeout of the session, and it is the servers that decide on it: by
default not less than 2 and not more than 20 of their ticks.
A warning says so if it is another than was asked for.
Since a server may pass on late what it heard, dlock relies on a little less than
the timeout.
After every eighth of it, a holder asks a majority of the servers to confirm the
lock, which costs them as much as a write.
A holder that dies is found out when its session ends, one TTL later.
A broken connection to one server does not lose the lock.
dlock ends the command when no majority has answered for so long that the session
could be over, and at once when the session has ended or the node was deleted.
If a write takes longer than a twelfth of the TTL, the lock cannot be kept: choose a
longer one.
.PP
The fencing number is the czxid of the node.
It grows over all locks of the ensemble, also when a lock is removed and made
again.
.SS Connections
Each holder and each waiter has a connection of its own.
A server has by default at most 60 for one client address
.RB ( maxClientCnxns ),
so no more than 60 jobs of one machine can hold or wait at the same server.
If a server has no free connection, dlock goes on to the next one.
If no server has a free connection, dlock tries again until
.B \-\-wait
is over.
Until then it has no place in the queue.
With
.BR \-\-nonblock ,
it exits with 69.
Raise the limit if waiters often meet it.
A holder or waiter keeps its connection while it works: it never gives it up for
another one.
.SS Rights
.I ?auth_file=FILE
in the URL names a file with
.IR USER:PASSWORD ,
to which only its owner may have access;
.I zookeeper://USER@HOST
with
.B \-\-password\-file
means the same.
The nodes that dlock makes then belong to this user alone, so that all who share
the lock need it.
It needs the rights to read, create and delete in the lock and in the root, and for
.B "dlock id"
to write.
Without it, anybody who reaches the servers may do anything with the nodes.
.SS What it cannot promise
.TP
.B kazoo as it is by default,
when it comes later: it sees no nodes but those that end in __lock__.
Say
.I ?style=kazoo
here, or there
.BR "extra_lock_patterns=[\(aq\-lock\-\(aq]" .
One name cannot please two libraries, so of Curator's mutexes, Curator's
read/write locks and kazoo only one kind should use a lock.
dlock waits for all of them.
.TP
.B Encryption.
dlock has neither TLS nor SASL for ZooKeeper: anybody who listens in sees the
password, and a port that is for TLS only
.RI ( secureClientPort )
closes the connection.
.TP
.B Servers that are set back
to an older state can issue the same fencing numbers a second time.
.TP
.B minSessionTimeout
below two ticks: a follower that is cut off may let a session end a fraction of
it too early.
)";

inline constexpr std::string_view kMysql = R"(.SH MYSQL
.SS Which of the three
.TP
.B mysql
is the one to take if nothing speaks for another.
The lock is a row, which its holder renews, and which lasts for a TTL without it.
It survives a broken connection and a restart of the server, and no transaction
is open while the job runs.
.TP
.B mysql\-version
is the same to its user, with an optimistic update of a version instead of a row
lock while the lock is taken.
Take it where several servers accept writes, as on a Galera cluster or in MySQL Group
Replication with several primaries: the other two are refused there.
.TP
.B mysql\-row
is
.BR mysql ,
and besides it locks a row of
.I dlock_rows
in a transaction for as long as the job runs.
Take it if other programs are to be excluded that lock that row, too, and check that
the last of these statements returns it:
.PP
.nf
.in +4n
SET SESSION innodb_lock_wait_timeout = 10;
INSERT IGNORE INTO dlock_rows (name) SELECT \(aqjob\(aq FROM DUAL
  WHERE NOT EXISTS (SELECT 1 FROM dlock_rows WHERE name = \(aqjob\(aq);
START TRANSACTION;
SELECT name FROM dlock_rows WHERE name = \(aqjob\(aq FOR UPDATE;
.in -4n
.fi
.IP
With
.B \-\-shared
and
.B \-\-slots
dlock locks it in share mode.
Such a program is waited for and named; only then does dlock start the command.
The row is locked on a connection of its own.
If that breaks, or somebody kills it, or the server is restarted or demoted,
dlock ends the job, with status 79.
The lease keeps other jobs of dlock out until the command has ended, but nothing does so with
such a program: it has the row at once.
It has it, too, during what
.B \-\-min\-hold
adds.
If it has the row on a server that is demoted, it goes on beside a job on the next
one.
And if it waits for longer than the ten seconds, it can hold up the renewals of all
locks on that server, while somebody else waits to lock tables or to make the server
.BR read_only .
.B ALTER TABLE
of
.IR dlock_rows ,
or a backup that locks tables, waits for the job.
While it waits, the server grants no other lock of
.BR mysql\-row .
.PP
The three do not exclude one another: all who share a lock must use the same one.
They are tested with MariaDB 10.11 and 11.8 and MySQL 9.7.
.SS Where the server is
A URL names the database, which must exist, so a bare name with
.B \-\-server
is not enough:
.PP
.nf
.in +2n
mysql://USER@HOST:PORT/DATABASE
mysql://USER@PRIMARY,STANDBY/DATABASE
mysql://USER@/DATABASE?socket=/run/mysqld/mysqld.sock
.in -2n
.fi
.PP
Without a user it is the one that runs dlock, without a host it is
.IR localhost ,
by TCP.
Several hosts are a primary and its standbys: the first of them that is not
.B read_only
is taken.
They are no quorum.
.PP
The password comes from
.B \-\-password\-file
or from the URL in a profile or in
.BR DLOCK_BACKEND .
.PP
Over TCP, the URL says how the connection is encrypted:
.TP
.B ?tls=preferred
(the default) uses TLS if the server offers it; a line says if one on another machine does not.
It accepts any certificate.
.TP
.B ?tls=on
refuses a server without TLS before it sends anything, even the name of the user.
It accepts any certificate.
.TP
.B ?tls=verify
also refuses a certificate that is not for the host in the URL, or not signed by a
trusted CA: one of the system, or that of
.BR &ca=FILE .
With the client library of Debian 13, the name is not checked if the host is
.I 127.0.0.1
or
.IR ::1 ;
write
.I localhost
instead.
.TP
.B ?tls=off
does not encrypt.
.PP
With
.B on
and
.BR verify ,
.B &cert=FILE&key=FILE
names the certificate of a user that needs one.
Each FILE is the absolute path of a PEM file.
A key that other users can read is refused.
.PP
With
.BR preferred ,
a server without TLS receives the name of the user and a hash of the password, from
which a weak password can be guessed; somebody who answers in place of the server
only has to say that he has no TLS.
.PP
dlock sends the password itself only over TLS or a unix socket.
So a user with
.BR caching_sha2_password ,
the default of MySQL 8, needs one of the two.
With
.B preferred
and
.BR on ,
somebody who answers in place of the server can still receive that password; with
.B verify
nobody can.
.SS Tables and rights
There are two for locks,
.I dlock_keys
and
.IR dlock_locks ,
.I dlock_rows
for
.BR mysql\-row ,
.I dlock_ids
for
.BR "dlock id" ,
and
.I dlock_done
for
.BR "dlock once" ;
.B \-\-prefix
replaces the
.BR dlock_ .
They are created when they are first needed.
If the user has no right to, somebody who has does it once:
.PP
.nf
.in +2n
dlock backends \-\-schema mysql | mariadb app
GRANT SELECT, INSERT, UPDATE, DELETE ON app.dlock_keys TO jobs@\(aq%\(aq;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.dlock_locks TO jobs@\(aq%\(aq;
GRANT SELECT, INSERT, UPDATE ON app.dlock_rows TO jobs@\(aq%\(aq;
GRANT SELECT, INSERT, UPDATE ON app.dlock_ids TO jobs@\(aq%\(aq;
GRANT SELECT, INSERT, DELETE ON app.dlock_done TO jobs@\(aq%\(aq;
.in -2n
.fi
.PP
Nothing else is needed: any user may end connections of its own, which is how
.B force\-release
reaches a holder.
Breaking the lock of another user of the database needs more, as told below.
.PP
The last fencing number of each lock is in
.IR dlock_keys .
If nobody has used a lock for a week, its rows are deleted there, and in
.IR dlock_locks :
a few rows each time that dlock acquires another lock.
Those of
.I dlock_rows
stay.
Rows of
.I dlock_keys
are deleted by MariaDB 10.6 or later and MySQL 8.0.1 or later.
On an older server they stay, and you may delete those of locks that nobody holds or
waits for
.RB ( "dlock list" ).
.SS How they wait
A waiter sleeps in the server, in
.BR GET_LOCK() ,
on a connection of its own, and the holder that releases the lock wakes the next
one.
Only the first who waits for
.BR \-\-slots ,
or for a holder that has no connection (as after
.BR "dlock acquire \-\-ttl" ),
looks about every second.
.PP
So there is a connection for each holder and for each waiter, and a second one
for each who has or waits for a row of
.BR mysql\-row .
They count towards
.B max_connections
and
.BR max_user_connections .
Waiters leave a tenth of
.B max_connections
(2 to 10) free, for holders that must reconnect and for operators
.RB ( "dlock list" ).
If only these connections are free, a new waiter disconnects, so it has no place in
the queue, and tries again every second or so.
If the server has no free connection at all, dlock tries again: see OUTAGES.
Raise these limits if waiters often meet them.
.SS Leases
All times are by the clock of the server.
A holder extends its lease three times per TTL, and its connections are ended by the
server when they were silent for a TTL.
A job whose server does not answer is ended before its lease is over.
.PP
While the server accepts no writes, leases cannot be renewed.
Causes are
.B "FLUSH TABLES WITH READ LOCK"
(some backup tools use it),
.BR read_only ,
and a full disk.
If this lasts longer than the rest of a lease, dlock ends the job with status 79.
If a job may run during a backup, give it a
.B \-\-ttl
longer than the time for which the backup blocks writes.
.SS Several servers that accept writes
On a Galera cluster, and in a replication group with several primaries,
.B mysql
and
.B mysql\-row
are refused:
.B GET_LOCK()
works on one server only, Percona XtraDB Cluster refuses it, and the clocks of the
servers may differ.
There
.B mysql\-version
works in another way:
.IP \(bu 2
A waiter does not sleep in the server.
The first one looks several times a second, later ones less often.
One that is stopped or dies holds up those behind it for some seconds.
.IP \(bu 2
A holder renews its lease every second.
It hears of a
.B force\-release
then.
.IP \(bu 2
When a holder dies, or a lease of
.B "dlock acquire \-\-ttl"
is over, a waiter gets the lock after it has seen no renewal for a whole TTL.
.IP \(bu 2
A run that does not wait for so long
.RB ( \-\-nonblock ,
or a
.B \-\-wait
shorter than the TTL of the holder) cannot watch the holder.
It gets the lock of a dead holder only when the lease has been over for 5 minutes by the
clock of its server.
.PP
So the clocks of the servers must not differ by more than 5 minutes.
.SS What it cannot promise
.TP
.B The clock of the server.
As long as the connection of a holder stands, nobody gets its lock, whatever that
clock is set to.
If the clock is set forward by more than the TTL while a holder has no connection, its
lease expires early: two jobs may run until the holder's next renewal.
The fencing number tells them apart.
If the clock is set back, the lock of a dead holder lasts longer by that much.
.TP
.B Failover with asynchronous replication.
The standby that becomes the primary may not have heard of the latest grants: the
lock is then granted twice.
The later grant has the larger fencing number, if the clock of the standby is not behind.
Semi\-synchronous replication
.RB ( AFTER_SYNC ,
with a timeout that never lets it go on alone) avoids it.
A server that crashes before its latest commits are on disk
.RB ( innodb_flush_log_at_trx_commit=0 )
forgets them in the same way, and with them what was done just before:
.B dlock once
warns of such a server.
.TP
.B "A proxy that shares connections"
between its clients, such as ProxySQL or MaxScale, breaks dlock:
.B GET_LOCK()
and open transactions belong to one connection.
Go to the server directly, or have the proxy keep a connection for each client.
.TP
.B binlog_format=STATEMENT
is refused by the server for what dlock does at READ COMMITTED: use
.B ROW
or
.BR MIXED .
.TP
.B Breaking the lock of another user.
.B force\-release
must end the connection of the holder, which needs
.B CONNECTION ADMIN
.RB ( CONNECTION_ADMIN
of MySQL), or the same user.
Without it, the holder notices at its next renewal.
.TP
.B Other programs
with the right to write to the tables can do anything to the locks.
)";

inline constexpr std::string_view kSharding = R"(.SH SHARDING
Several databases can share the locks between them: each key belongs to one,
which is picked by a hash of the key.
They are of one backend, and know nothing of one another.
A profile names them with
.B shards
in place of
.BR url :
.PP
.nf
.in +2n
{
  "backend": "db",
  "backends": {
    "db": {
      "shards": ["redis://locks@db1/0", "redis://locks@db2/0"],
      "password_file": "/etc/dlock/redis.password"
    }
  }
}
.in -2n
.fi
.PP
The other options count for each of the shards; a password file counts for those
whose URL has no password.
All that is said of the backend holds for each lock.
Which shard a key has
.B "dlock show"
says, and
.B \-v
when the lock is taken.
.TP
.B When a shard is down,
its keys cannot be locked.
A new run fails with status 69 after
.BR \-\-connect\-timeout ,
a waiter goes on waiting, and a holder ends its command when its lease is about to
expire: see OUTAGES.
Locks in the other shards are not affected: who wants one of them does not even
connect to any shard but its own.
.B "dlock list"
asks one shard after the other, shows what it finds, names the shards whose locks
are missing, and exits with 69; its JSON then has the array
.BR missing .
.TP
.B All who share locks must have the same list.
The order does not matter, nor do user, password, TLS, the usual port, upper case in
the name of a host, or how a number or an address is written.
A list that names one database twice is refused.
But dlock asks neither DNS nor the file system nor the server here, so write each URL alike
on all machines.
These are different shards for dlock, even if they are the same database:
.I localhost
and
.IR 127.0.0.1 ,
.I db1
and
.IR 10.0.0.1 ,
.I 0.0.0.0
and
.IR 127.0.0.1 ,
a host and a unix socket, a path and a symbolic link to it, two lists of servers of which some
are the same, and two names of a MySQL database that differ in upper case only.
.TP
.B When the list changes,
some keys move: if one shard is added to
.IR N ,
one key in
.I N+1
moves, and only to the new one; if one is removed, only its keys move.
Clients with different lists do not exclude each other for the keys that have
moved.
So change the list for all clients at once, while no lock is held or waited for.
A lock that is held then stays where it is until it is released, and others do not
see it.
.B "dlock list"
warns of locks that it finds in a shard that is not theirs.
If the clock of the new shard is not behind that of the old one, the fencing numbers of a
key that moves keep growing; with
.B zookeeper
they can become smaller.
)";

inline constexpr std::string_view kExamples = R"(.SH EXAMPLES
A line for
.BR crontab (1).
It skips a run while the last one is still at work, and prints nothing then, so
that cron has nothing to mail.
cron runs it in the home directory with a PATH of
.IR /usr/bin:/bin ,
so dlock is called by its path:
.PP
.nf
.in +4n
*/5 * * * * /usr/local/bin/dlock run \-qn \-E 0 \-k sync \-\- ./sync\-all
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
A job that all machines start, done once a day:
.PP
.nf
.in +4n
dlock once \-b redis://redis\-1:6379/0 \-k import \-\-every 1d \-\- ./import.sh
.in -4n
.fi
.PP
What is going on, and an end to what hangs:
.PP
.nf
.in +4n
dlock list
dlock show nightly\-report
dlock force\-release nightly\-report \-\-reason "hangs since Monday"
dlock list \-\-older\-than 6h \-\-output key,host,pid,held
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

inline constexpr std::string_view kSeeAlso = R"(.SH SEE ALSO
.BR flock (1),
.BR timeout (1),
.BR flock (2)
)";

}  // namespace dlock::cli::man
