#!/usr/bin/env bash
# ctest: cost 30
# redis+sentinel:// finds the master, and follows a failover: a job whose lock the new master has goes
# on, one whose lock it has not is ended, and waiters ask the new master.  A replica is not believed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

start_redis one
start_replica two one
start_sentinels one s1 s2 s3
url="redis+sentinel://$sentinels/mymaster"
export DLOCK_BACKEND="$url?wait_replicas=0"

# What a failover can lose is said once, unless the URL knows it.
output=$("$DLOCK" run -b "$url" --key job -- true 2>&1)
[[ $output == *"dlock: redis mymaster: a failover can lose a lock that no replica has yet"* ]] ||
  fail "no warning: $output"
[[ $("$DLOCK" run --key job -- true 2>&1) == '' ]] || fail "it warns although the URL says wait_replicas=0"

# A lock that the new master has: its job goes on, a waiter follows.
has_lock() { [[ $(rcli "$1" exists dlock:job) == 1 ]]; }
"$DLOCK" run --ttl 10s --key job -- bash -c "until [[ -e $tmp/go ]]; do sleep 0.01; done" &
job=$!
wait_until 20 has_lock two
"$DLOCK" run --ttl 10s --key job -- touch "$tmp/waiter-ran" 2>"$tmp/waiter" &
waiter=$!
is_waiting() { [[ $("$DLOCK" show --json job) == *'"waiting_ms"'* ]]; }
wait_until 20 is_waiting
stop_redis one
wait_until 30 is_master two
wait_until 30 is_waiting
[[ ! -e $tmp/waiter-ran ]] || fail "the waiter ran beside the job"
touch "$tmp/go"
wait "$job" || fail "the job was ended: status $?"
wait "$waiter" || fail "the waiter: $(cat "$tmp/waiter")"
[[ -e $tmp/waiter-ran ]] || fail "the waiter did not run"

# The old master comes back, and becomes a replica: nobody asks it for locks.
restart_redis one
wait_until 30 is_replica one
"$DLOCK" run --key job -- sleep 1000 &
job=$!
wait_until 20 has_lock two
output=$("$DLOCK" show job)
[[ $output == *"pid $job"* ]] || fail "show after a failover: $output"
kill "$job"
wait "$job" || true

# A lock that the new master has not: the holder learns it from the sentinels, long before the next renewal.
wait_until 30 is_linked one
pause_redis one
status=0
"$DLOCK" run --ttl 60s --key lost -- sleep 1000 2>"$tmp/lost" &
job=$!
listens() { [[ $(rcli s1 client list; rcli s2 client list; rcli s3 client list) == *' sub=1 '*cmd=subscribe* ]]; }
wait_until 20 listens
pause_redis two
resume_redis one
wait_until 30 is_master one
begun=$SECONDS
wait "$job" || status=$?
((status == 79)) || fail "status $status: $(cat "$tmp/lost")"
((SECONDS - begun < 12)) || fail "the loss was noticed after $((SECONDS - begun)) s"
grep -q 'lost "lost"' "$tmp/lost" || fail "no word of the loss: $(cat "$tmp/lost")"
resume_redis two
wait_until 30 is_replica two
