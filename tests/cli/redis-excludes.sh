#!/usr/bin/env bash
# What run-excludes.sh counts is exact when a redis server keeps the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

start_redis a
# Each killed supervisor costs a ttl: a short one.
bash "$DLOCK_SOURCE/tests/cli/run-excludes.sh" --backend "${redis_url[a]}" --ttl 1s
[[ $(rcli a get '{dlock:counter}:fence') -ge 1000 ]] || fail "the server counted too few grants"
assert_equal 0 "$(rcli a zcard '{dlock:counter}:queue')" "waiters that were left in the queue"
