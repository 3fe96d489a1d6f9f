#!/usr/bin/env bash
# -vv prints a line for each wait in the kernel's queue, also if it ends without the lock.
. "$(dirname "$0")/lib.sh"

cd "$tmp"
path=$(printf %s "$locks/job" | sed 's/[.]/[.]/g')
waits_ended_by() { grep -cE "^dlock: lock file ${path}[^ ]*: wait -> $1, [0-9]+[.][0-9] ms\$" err || true; }

hold --label holder
try 75 -vv -w 0.1 -k job -- true
(($(waits_ended_by held) == 1)) || fail "no line for a wait that timed out: $(<err)"

"$DLOCK" run -vv -k job -- true 2>err &
waiter=$!
wait_until 30 has_waiter "$locks/job"
kill -TERM "$waiter"
expect_status 143 wait "$waiter"
(($(waits_ended_by 'stopped waiting for "job"') == 1)) || fail "no line for a wait that was cancelled: $(<err)"

"$DLOCK" run -vv -k job -- true 2>err &
waiter=$!
wait_until 30 has_waiter "$locks/job"
release
wait "$waiter"
(($(waits_ended_by granted) == 1)) || fail "no line for a wait that was granted: $(<err)"
