#!/usr/bin/env bash
# acquire --while with --event-log on a descriptor of the caller: the processes that keep the lock keep a pipe only if
# the script has it open, too.  A shell waits for the end of $(dlock acquire ... --event-log /dev/stdout).
. "$(dirname "$0")/lib.sh"
cd "$tmp"

cat >script <<'SH'
#!/bin/bash
lock=$("$DLOCK" acquire -q -k job --while $$ --event-log "$1") || exit
echo "$lock" >lock
until [[ -e end ]]; do sleep 0.02; done
SH
chmod +x script

./script /dev/stdout &
script=$!
wait_until 30 test -s lock
assert_contains "$(<lock)" '"event":"acquired"'
assert_held job
touch end
expect_status 0 wait "$script"
wait_until 30 is_free job

# The script's own, until the end.
rm lock end
./script /dev/stderr 2> >(cat >log) &
script=$!
wait_until 30 test -s lock
touch end
expect_status 0 wait "$script"
wait_until 30 grep -q '"event":"released"' log
