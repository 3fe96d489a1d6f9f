#!/usr/bin/env bash
# -vv says which key has changed when the server announces that.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
redis_version=$(rcli a info server | sed -n 's/^redis_version:\([0-9]*\).*/\1/p')
((redis_version >= 6)) || skip "redis before 6 announces no changes"
export DLOCK_BACKEND=${redis_url[a]}
rcli a set dlock:job other px 60000 >out
"$DLOCK" run -vv -k job -- true 2>err &
waiter=$!
is_told() { grep -q 'waiting for' err; }
wait_until 30 is_told
rcli a del dlock:job >out
wait "$waiter"
assert_contains "$(<err)" ': message -> "dlock:job" has changed' "what -vv prints"
