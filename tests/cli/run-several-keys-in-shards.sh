#!/usr/bin/env bash
# Keys of one run may live in several shards.  A shard that is down ends the run with 69, and the other locks are
# free at once.  One that goes down while another key is waited for is waited out, and nothing runs before all are
# held again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
start_redis a
start_redis b
export DLOCK_BACKEND=db DLOCK_CONFIG=$tmp/config.json DLOCK_CONNECT_TIMEOUT=1
shards config.json "${redis_url[a]}" "${redis_url[b]}"

# The first keys, by their bytes, of each shard: ${of[NAME]}; that of a comes first.
declare -A of=()
for ((i = 0; ${#of[@]} < 2; ++i)); do
  for name in a b; do
    location=$("$DLOCK" show "$name-$i" || (($? == 1)))
    [[ $location != *"  Backend   ${redis_url[$name]}/0"* || -n ${of[$name]-} ]] || of[$name]=$name-$i
  done
done
both=(-k "${of[b]}" -k "${of[a]}")
in_shard() { rcli "$1" exists "dlock:${of[$1]}"; }

"$DLOCK" run "${both[@]}" -- sh -c 'touch held; until test -e go; do sleep 0.02; done' &
wait_until 30 test -e held
assert_equal 1 "$(in_shard a)"
assert_equal 1 "$(in_shard b)"
touch go
wait "$!"
rm go held

# The second one is down.
stop_redis b
expect_status 69 "$DLOCK" run "${both[@]}" --ttl 60 -- true 2>err
assert_contains "$(<err)" "this is the shard of \"${of[b]}\", one of 2"
assert_equal 0 "$(in_shard a)" "the lock in the shard that is well"
restart_redis b

# The first one goes down while the second is waited for, and loses its data.
"$DLOCK" run -q -k "${of[b]}" -- sh -c 'until test -e go; do sleep 0.02; done' &
other=$!
wait_until 30 is_held "${of[b]}"
"$DLOCK" run "${both[@]}" --ttl 3 -- sh -c 'touch runs' 2>err &
two=$!
wait_until 30 is_held "${of[a]}"
stop_redis a
sleep 4  # its lease is over by then
touch go
wait "$other"
# It has b now, and finds that a is lost.
wait_until 30 grep -q "lost \"${of[a]}\" while waiting for \"${of[b]}\"; taking all again: " err
wait_until 30 is_free "${of[b]}"
[[ ! -e runs ]] || fail "it runs without ${of[a]}"
sleep 2  # more than --connect-timeout: it has reached that shard before
! gone "$two" || fail "it has not waited: $(<err)"
restart_redis a
wait "$two" || fail "status $?: $(<err)"
[[ -e runs ]] || fail "it did not run"
assert_equal 0 "$(in_shard a)"
assert_equal 0 "$(in_shard b)"
