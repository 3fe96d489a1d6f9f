#!/usr/bin/env bash
# An event log that cannot be opened is refused with 64 before the lock is asked for: what is no file or pipe, a link, a
# pipe without a reader, a file of another user.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"
unset DLOCK_EVENT_LOG

# refuses TEXT ARGUMENTS...
refuses() {
  timeout 30 "$DLOCK" run -k job "${@:2}" -- touch started 2>err && fail "status 0 with ${*:2}"
  assert_equal "1 $1" "$(wc -l <err) $(sed 's/^dlock: //' err)" "stderr with ${*:2}"
  expect_status "${status:-64}" timeout 30 "$DLOCK" run -k job "${@:2}" -- touch started 2>err
  [[ ! -e started ]] || fail "the command was started with ${*:2}"
  [[ ! -e $locks/job ]] || fail "the lock was asked for with ${*:2}"
}
mkdir dir
ln -s log link
ln -s /dev/fd/1 stdout
mkfifo fifo
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
refuses 'event log missing/log: No such file or directory' --event-log missing/log
refuses 'event log dir: is no file or pipe' --event-log dir
refuses 'event log socket: is no file or pipe' --event-log socket
refuses 'event log /dev/zero: is no file or pipe' --event-log /dev/zero
refuses 'event log link: is a link: give another path' --event-log link
refuses 'event log stdout: is a link: give another path' --event-log stdout
refuses 'event log fifo: is a pipe that no process reads' --event-log fifo
refuses 'event log /dev/fd/77: No such file or directory' --event-log /dev/fd/77
[[ ! -e log ]] || fail "the file that a link names was created"
expect_status 64 "$DLOCK" acquire -k job --while $$ --event-log dir 2>err
expect_status 64 "$DLOCK" once -k job --remember 1h --event-log dir -- touch started 2>err

# In the environment and in a config file the path is absolute: each job has another directory.
expect_status 64 env DLOCK_EVENT_LOG=log "$DLOCK" run -k job -- touch started 2>err
assert_equal 'dlock: DLOCK_EVENT_LOG: is not an absolute path' "$(<err)"
mkdir -p "$HOME/.config/dlock"
config=$HOME/.config/dlock/config.json
(umask 077 && echo '{"event_log": "log"}' >"$config")
expect_status 78 "$DLOCK" run -k job -- touch started 2>err
assert_equal "dlock: $config:1: event_log: is not an absolute path; see: dlock doctor" "$(<err)"
[[ ! -e started ]] || fail "a command was started"
(umask 077 && echo "{\"event_log\": \"$tmp/configured\"}" >"$config")
"$DLOCK" run -k job -- true
check_log configured
rm configured
"$DLOCK" run -k job --event-log '' -- true
[[ ! -e configured ]] || fail "--event-log '' writes to the file of the config"
"$DLOCK" run -k job --event-log log -- true
check_log log
