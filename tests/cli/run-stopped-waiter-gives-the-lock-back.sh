#!/usr/bin/env bash
# ctest: every kind of backend
# A waiter that is suspended when the lock is granted to it gives the lock back within some seconds, and exits with 75
# without starting its command.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

holder a -k job
"$DLOCK" run -k job -- touch "$tmp/ran" 2>waiter.err &
waiter=$!
wait_until 30 grep -q 'waiting for "job"' waiter.err
kill -STOP "$waiter"
finish a
# Nobody waits longer than it takes to give the lock back.
expect_status 0 "$DLOCK" run -q -k job -w 30 -- true
wait_until 30 gone "$waiter"
expect_status 75 wait "$waiter"
assert_contains "$(<waiter.err)" 'released "job" without running touch: this dlock was suspended' "stderr of the waiter"
[[ ! -e ran ]] || fail "the command was started"
