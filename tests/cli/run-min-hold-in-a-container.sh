#!/usr/bin/env bash
# ctest: cost 8
# Nothing outlives the first process of a container.  So where that is dlock, --min-hold is in the record of the lock when it
# ends, however slow the server is, and the lock is held until then.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/proxy.sh"
start_redis a
start_proxy slow "${redis_port[a]}"
proxy slow delay-requests 300
container=(unshare --pid --fork --mount-proc)
"${container[@]}" true 2>/dev/null || container=()

begun=$(now_ms)
expect_status 7 "${container[@]}" "$DLOCK" run -b "redis://127.0.0.1:${proxy_port[slow]}" -k job --ttl 4s --min-hold 6 -- sh -c 'exit 7'
export DLOCK_BACKEND=${redis_url[a]}
shown=$("$DLOCK" show --json job)
assert_contains "$shown" '"ended": true' "the record when dlock has ended"
expect_status 0 "$DLOCK" run -q -k job -w 60 -- true
took=$(($(now_ms) - begun))
((took >= 6000)) || fail "free after $took ms"
