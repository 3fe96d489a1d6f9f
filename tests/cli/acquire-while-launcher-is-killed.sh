#!/usr/bin/env bash
# ctest: every kind of backend
# acquire --while PID that is killed after it has printed the token, and before it has returned: the script is told of a
# failure, so the lock is free, whatever the script does then.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need pgrep
export DLOCK_BACKEND

cat >script <<'SH2'
#!/bin/bash
"$DLOCK" acquire -q -k job --while $$ >out &
echo $! >launcher
wait $!
echo $? >status
exec 9<> <(:)
until [[ -e end ]]; do read -rt 0.02 -u 9 || :; done
SH2
chmod +x script

# shellcheck disable=SC2119  # no arguments
hold
./script 2>/dev/null &
script=$!
wait_until 30 test -s launcher
launcher=$(<launcher)
wait_until 30 lib_waits_more job 0
kill -STOP "$launcher"
touch go
wait "$holder"
# It is granted, and waits for the launcher.
keeper=$(pgrep -f "^lock keeper for pid $script\$")
is_granted() { [[ $("$DLOCK" show job --output kind | sed -n 2p) == acquire ]]; }
wait_until 10 is_granted
# rests PID: it has done what it had to do, and waits.
rests() {
  local before
  before=$(switches "$1")
  sleep 0.2
  (($(switches "$1") == before))
}
wait_until 10 rests "$keeper"
kill -STOP "$keeper"
kill -CONT "$launcher"
wait_until 10 test -s out
wait_until 10 rests "$launcher"
kill -KILL "$launcher"
kill -CONT "$keeper"
wait_until 10 is_free job
wait_until 10 gone "$keeper"
wait_until 10 test -s status
assert_equal 137 "$(<status)" "status of dlock acquire"
touch end
expect_status 0 wait "$script"
