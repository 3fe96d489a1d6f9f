#!/usr/bin/env bash
# Two slots on three redlock servers need all three: that is said at the start, and where the backends
# are listed.  A server that is still to free the exclusive lock is waited for, and is no conflict.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redlock a b c d e
three=${servers%,*,*}
said='2 slots need all of 3 servers, and survive the failure of none; with 5 servers they survive that of 1'

"$DLOCK" run --backend "redlock://$three" -k job --slots 2 -- true 2>err || fail "status $?"
assert_equal "dlock: $said" "$(<err)" "on three servers"
"$DLOCK" run --backend "redlock://$servers" -k job --slots 2 -- true 2>err || fail "status $?"
assert_equal "" "$(<err)" "on five servers"
"$DLOCK" run --backend "redlock://$three" -k job --slots 1 -- true 2>err || fail "status $?"
assert_equal "" "$(<err)" "one slot"
assert_contains "$("$DLOCK" backends)" "redlock: --slots 2 or more need more than a majority"

# A server that has not heard of the release yet.
for ((i = 0; i < 10; ++i)); do
  rcli c set dlock:job left px 300 >/dev/null
  rcli c set '{dlock:job}:owner' '{}' px 300 >/dev/null
  "$DLOCK" run -q --backend "redlock://$three" -k job --slots 2 -- true 2>err || fail "status $?: $(<err)"
done
# All of them have: that is a conflict, at once.
"$DLOCK" run -q --backend "redlock://$three" -k job -- sleep 100 &
holder=$!
is_held() { [[ -n $(rcli a get dlock:job) && -n $(rcli b get dlock:job) && -n $(rcli c get dlock:job) ]]; }
wait_until 20 is_held
expect_status 64 "$DLOCK" run --backend "redlock://$three" -k job --slots 2 -- true
kill "$holder"
