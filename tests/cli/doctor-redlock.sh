#!/usr/bin/env bash
# What dlock doctor finds wrong with several Redis servers.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/doctor.sh"
cd "$tmp"
unset DLOCK_BACKEND

start_redlock a b c
doctor 1 -b "redlock://$servers"
finds ok redlock-number '3 servers'
finds FAIL redlock-same-machine "redis 127.0.0.1:${redis_port[b]}: on the same machine as redis 127.0.0.1:${redis_port[a]}"
finds ok try-force-release
finds_no try-done-mark
finds warn redis-uptime

# A TTL that is shorter than the time that the servers are up.
wait_until 20 eval 'doctor 1 -b "redlock://$servers" --ttl 1s; ! grep -q "^warn *redis-uptime" out'
finds ok redis-uptime

# One server by two names; two servers.
doctor 1 -b "redlock://127.0.0.1:${redis_port[a]},localhost:${redis_port[a]}"
finds FAIL redlock-same-server 'the same server as'
doctor 1 -b "redlock://127.0.0.1:${redis_port[a]},127.0.0.1:${redis_port[b]}"
finds warn redlock-number '2 servers survive the failure of none'

# One that is silent does not keep the traces on the others.
pause_redis a
doctor 1 -b "redlock://$servers" --connect-timeout 500ms
finds warn redis-connect "redis 127.0.0.1:${redis_port[a]}: no answer"
finds_no try-clean-up
for name in b c; do assert_equal '' "$(rcli "$name" keys '*')" "keys on $name"; done
# Nor does it take the time of what is tried, however long jobs would wait for it.
doctor 1 -b "redlock://$servers" --connect-timeout 20s
finds ok try-force-release
resume_redis a

# Of a minority that is down the other servers are tried; a majority that is down is an error.
stop_redis c
doctor 1 -b "redlock://$servers"
finds warn redis-connect "redis 127.0.0.1:${redis_port[c]}: connection refused"
finds ok try-release
stop_redis b
doctor 69 -b "redlock://$servers"
finds FAIL redis-connect "redis 127.0.0.1:${redis_port[b]}: connection refused"
finds_no try-acquire
