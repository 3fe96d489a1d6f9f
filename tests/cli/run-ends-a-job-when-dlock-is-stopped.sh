#!/usr/bin/env bash
# One of the two processes of dlock is stopped and the other one is killed: the job is ended and the lock is free.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"

cd "$tmp"
"$DLOCK" run -q -k job -- ./tree 2>err &
front=$!
wait_until 30 tree_is_grown
supervisor=$(pgrep -P "$front")
kill -STOP "$supervisor"
kill -KILL "$front"
wait "$front" 2>/dev/null || true
wait_until 20 gone "$supervisor"
assert_felled "the supervisor was stopped and the front killed"
assert_free job

"$DLOCK" run -q -k job -- ./tree 2>err &
front=$!
wait_until 30 tree_is_grown
kill -STOP "$front"
pkill -KILL -P "$front"
wait_until 20 gone "$front"
status=0
wait "$front" || status=$?
assert_equal 79 "$status" "status when the front was stopped and the supervisor killed"
assert_felled "the front was stopped and the supervisor killed"
assert_free job
