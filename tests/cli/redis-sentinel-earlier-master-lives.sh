#!/usr/bin/env bash
# ctest: cost 10
# After a failover the earlier master may live, and not know that it is replaced; and no sentinel may have told
# of it.  Holders renew at the new one all the same, and dlock watch looks there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

start_redis one
start_replica two one
start_sentinels one s1 s2 s3
export DLOCK_BACKEND="redis+sentinel://$sentinels/mymaster?wait_replicas=0"
for name in s1 s2 s3; do rcli "$name" acl setuser default -subscribe >/dev/null; done
rcli one acl setuser default -replicaof -slaveof >/dev/null

"$DLOCK" run --ttl 3s --key early -- sleep 1000 &
holder=$!
"$DLOCK" watch >"$tmp/seen" &
wait_until 20 grep -q early "$tmp/seen"
rcli s1 sentinel failover mymaster >/dev/null
is_known() { [[ $(rcli "$1" sentinel get-master-addr-by-name mymaster | tail -1) == "${redis_port[two]}" ]]; }
for name in s1 s2 s3; do wait_until 30 is_known "$name"; done

"$DLOCK" run --key late -- sleep 1000 &
wait_until 20 grep -q late "$tmp/seen"
has_lock() { [[ $(rcli "$1" exists dlock:early) == 1 ]]; }
lacks_lock() { ! has_lock "$1"; }
wait_until 20 lacks_lock one
has_lock two || fail "the holder does not renew at the new master"
kill -0 "$holder" || fail "the job was ended"
is_master one || fail "the test is of no use: the earlier master knows that it is replaced"
! grep gone "$tmp/seen" || fail "a lock that is held is said to be gone"
