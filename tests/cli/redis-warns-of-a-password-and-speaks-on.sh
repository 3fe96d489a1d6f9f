#!/usr/bin/env bash
# A message before the lock is asked for (here, that others can read the password in --backend) does not end what dlock
# has to say on a pipe: the waiter names the holder, and the end of its supervisor is reported.
. "$(dirname "$0")/lib.sh"
. "$TEST_SOURCE/tests/cli/redis.sh"
cd "$tmp"

start_redis server requirepass secret
url=redis://:secret@127.0.0.1:${redis_port[server]}
DLOCK_BACKEND=$url "$DLOCK" run -q -k job -- sh -c 'touch held; exec sleep 600' &
holder=$!
wait_until 30 test -e held
mkfifo pipe
cat pipe >said &
"$DLOCK" run -b "$url" -k job -- sh -c 'touch runs; exec sleep 600' 2>pipe &
waiter=$!
wait_until 30 grep -q 'waiting for "job"' said
assert_contains "$(<said)" 'anybody on this machine can read the password' "the message before"
assert_equal 1 "$(grep -c 'can read the password' said)" "messages about the password"
kill "$holder"
wait_until 30 test -e runs
pkill -KILL -P "$waiter"
status=0
wait "$waiter" || status=$?
assert_equal 79 "$status" "status after the end of the supervisor"
wait_until 30 grep -q 'was killed by signal 9' said
