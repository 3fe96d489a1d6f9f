#!/usr/bin/env bash
# -vv says which key has changed when the server announces that to a holder.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
redis_version=$(rcli a info server | sed -n 's/^redis_version:\([0-9]*\).*/\1/p')
((redis_version >= 6)) || skip "redis before 6 announces no changes"
export DLOCK_BACKEND=${redis_url[a]}
"$DLOCK" run -vv -k job -- sleep 1000 2>err &
holder=$!
is_watched() { rcli a info stats | grep -q '^tracking_total_keys:[1-9]'; }
wait_until 30 is_watched
rcli a del dlock:job >out
got=0
wait "$holder" || got=$?
assert_equal 79 "$got" "status of a lost lock"
assert_contains "$(<err)" ': message -> "dlock:job" has changed' "what -vv prints"
