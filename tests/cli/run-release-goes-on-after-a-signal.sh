#!/usr/bin/env bash
# While the server does not answer, the release is tried again, and a signal that does not ask dlock to end, such as
# SIGCONT or SIGWINCH of a terminal, ends no tries.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
export DLOCK_BACKEND DLOCK_CONNECT_TIMEOUT=1s DLOCK_TTL=60s

start_redis a
DLOCK_BACKEND=${redis_url[a]}
cd "$tmp"

"$DLOCK" run -k job -- sh -c 'touch ready; until [ -e end ]; do sleep 0.05; done' 2>err &
run=$!
wait_until 20 test -e ready
kill -STOP "${redis_pid[a]}"
touch end
wait_until 30 grep -q 'cannot release "job"' err
kill -CONT "$run"
kill -WINCH "$run"
has_read_them() { grep -qE '^ShdPnd:\s*0+$' "/proc/$run/status"; }
wait_until 10 has_read_them
kill -CONT "${redis_pid[a]}"
expect_status 0 wait "$run"
assert_lacks "$(<err)" "was not released"
expect_status 0 "$DLOCK" run -q -n -k job -- true
