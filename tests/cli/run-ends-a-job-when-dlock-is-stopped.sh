#!/usr/bin/env bash
# One of the two processes of dlock is stopped and the other one is killed: the job is ended and the lock is free.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"

cd "$tmp"
"$DLOCK" run -q -k job -- ./tree 2>err &
launcher=$!
wait_until 30 tree_is_grown
supervisor=$(pgrep -P "$launcher")
kill -STOP "$supervisor"
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null || true
wait_until 20 gone "$supervisor"
assert_felled "the supervisor was stopped and the launcher killed"
assert_free job

"$DLOCK" run -q -k job -- ./tree 2>err &
launcher=$!
wait_until 30 tree_is_grown
kill -STOP "$launcher"
pkill -KILL -P "$launcher"
wait_until 20 gone "$launcher"
status=0
wait "$launcher" || status=$?
assert_equal 79 "$status" "status when the launcher was stopped and the supervisor killed"
assert_felled "the launcher was stopped and the supervisor killed"
assert_free job
