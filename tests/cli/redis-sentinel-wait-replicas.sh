#!/usr/bin/env bash
# ctest: cost 15
# ?wait_replicas=1: a lock that no replica has is given back, and a renewal that none has does not count.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

start_redis one
start_replica two one
start_sentinels one s1
export DLOCK_BACKEND="redis+sentinel://$sentinels/mymaster?wait_replicas=1"

"$DLOCK" run --key job -- test "$(rcli two exists dlock:job)" = 0
"$DLOCK" run --key job -- redis-cli -p "${redis_port[two]}" exists dlock:job >"$tmp/has"
[[ $(cat "$tmp/has") == 1 ]] || fail "the replica has no lock when the job runs"

pause_redis two
status=0
output=$("$DLOCK" run -n --key job -- touch "$tmp/ran" 2>&1) || status=$?
[[ $status == 69 && ! -e $tmp/ran ]] || fail "status $status: $output"
[[ $output == *"0 of 1 replicas have confirmed it (wait_replicas in the URL)"* ]] || fail "not said why: $output"
[[ $(rcli one exists dlock:job) == 0 ]] || fail "the lock was not given back"
resume_redis two

# A job whose renewals come to no replica is ended before its lock expires.
"$DLOCK" run --ttl 3s --key job -- sleep 1000 2>"$tmp/lost" &
job=$!
has_lock() { [[ $(rcli one exists dlock:job) == 1 ]]; }
wait_until 20 has_lock
pause_redis two
status=0
wait "$job" || status=$?
((status == 79)) || fail "status $status: $(cat "$tmp/lost")"
grep -q '0 of 1 replicas have confirmed it' "$tmp/lost" || fail "not said why: $(cat "$tmp/lost")"
resume_redis two
"$DLOCK" run --key job -- true
