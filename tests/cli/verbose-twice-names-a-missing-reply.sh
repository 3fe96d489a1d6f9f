#!/usr/bin/env bash
# -vv says so if a request was sent and no reply came.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
pause_redis a
expect_status 69 "$DLOCK" show -vv --connect-timeout 300ms job 2>err
resume_redis a
assert_contains "$(<err)" 'EVALSHA look dlock:job -> no reply: ' "what -vv prints"
