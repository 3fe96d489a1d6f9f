#!/usr/bin/env bash
# ctest: cost 20
# What a redis server refuses, what is no redis server and what is not there at all ends in the right
# status and in one line on stderr that names the server, soon, and starts nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
product=redis
. "$TEST_SOURCE/tests/cli/refusals.sh"

host=127.0.0.1
# Not there, or no redis server.
impostors answering <<'END'
http b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
smtp b'220 mail.example.net ESMTP\r\n'
silent b''
moved b'-MOVED 3999 10.0.0.9:6381\r\n'
END

start_redis a
url=${redis_url[a]}
works "$url"
refuses 69 '' redis://no-such-host.invalid
refuses 69 '127.0.0.1:1: connection refused' redis://$host:1
refuses 69 'connection refused' 'redis://[::1]:1'
refuses 69 "$tmp/missing: no such socket" "redis+unix://$tmp/missing"
refuses 69 'does not speak the Redis protocol' "redis://$host:${port[http]}"
refuses 69 'does not speak the Redis protocol' "redis://$host:${port[smtp]}"
refuses 69 'no answer within' "redis://$host:${port[silent]}"
refuses 69 'name the node that has it' "redis://$host:${port[moved]}"
refuses 69 "$host:${port[full]}: no answer within 1s" "redis://$host:${port[full]}" --connect-timeout 1s
start_proxy hole "${redis_port[a]}"
proxy hole blackhole
refuses 69 'no answer within' "redis://$host:${proxy_port[hole]}" --connect-timeout 1s
pause_redis a
refuses 69 'no answer within' "$url"
resume_redis a

# Passwords and rights.
refuses 77 'the server has none; leave it out' "${url/:\/\//:\/\/:pw@}"
refuses 77 'wrong password' "${url/:\/\//:\/\/nobody:pw@}"
rcli a acl setuser weak on '>pw' '~dlock:*' '~{dlock:*' '&*' +@all -evalsha -eval >/dev/null
refuses 77 'rights: man dlock-redis' "${url/:\/\//:\/\/weak:pw@}"
assert_contains "$(<err)" "'eval'" "what a user may not do"
refuses 77 'wrong password' "${url/:\/\//:\/\/weak:wrong@}"
rcli a acl setuser weak +@all -set -incr >/dev/null
refuses 77 'rights: man dlock-redis' "${url/:\/\//:\/\/weak:pw@}"
rcli a acl setuser weak +@all resetkeys '~other:*' >/dev/null
refuses 77 'rights: man dlock-redis' "${url/:\/\//:\/\/weak:pw@}"
rcli a config set requirepass pw >/dev/null
refuses 77 'needs a password' "$url"
refuses 77 'wrong password' "${url/:\/\//:\/\/:wrong@}"
works "${url/:\/\//:\/\/:pw@}"
REDISCLI_AUTH=pw rcli a config set requirepass '' >/dev/null
refuses 64 'no database of that number' "$url/99"

# Something else at the key.
rcli a lpush dlock:job x >/dev/null
refuses 75 '"job" is held by another program' "$url" -n
assert_equal x "$(rcli a lrange dlock:job 0 -1)" "the list that was there"
rcli a del dlock:job >/dev/null

# It takes no writes.
set_to() { rcli a config set "$1" "$2" >/dev/null; }
rcli a replicaof 127.0.0.1 1 >/dev/null
refuses 69 'is a replica; name its master' "$url"
set_to replica-serve-stale-data no
refuses 69 'is a replica that has lost its master' "$url"
rcli a replicaof no one >/dev/null
set_to min-replicas-to-write 1
refuses 69 'too few replicas' "$url"
set_to min-replicas-to-write 0
mkdir "${redis_dir[a]}/dump.rdb"
set_to save '3600 100000'
rcli a bgsave >/dev/null
save_failed() { rcli a info persistence | grep -q '^rdb_last_bgsave_status:err'; }
wait_until 20 save_failed
refuses 69 'cannot save its data to disk' "$url"
set_to save ''
works "$url"

# It has no room: but what is held stays, and is given up.
rcli a config resetstat >/dev/null
"$DLOCK" run -b "$url" -k held --ttl 2s -- sh -c 'touch held; until test -e go; do sleep 0.02; done' &
holder=$!
wait_until 20 test -e held
set_to maxmemory 1
refuses 69 'out of memory (maxmemory)' "$url"
refuses 69 'out of memory (maxmemory)' "$url" --shared
sleep 2  # its ttl
assert_equal 1 "$(rcli a exists dlock:held)" "what is held when the server is out of memory"
touch go
expect_status 0 wait "$holder"
assert_equal 0 "$(rcli a exists dlock:held)" "what was held when the server is out of memory"
set_to maxmemory 0

# It has no time: waited for, within --connect-timeout.
"$DLOCK" run -b "$url" -k job -- true  # the server has the scripts
exec {client}<>"/dev/tcp/$host/${redis_port[a]}"
set_to maxclients 1
refuses 69 'too many clients (maxclients)' "$url" --nonblock
"$DLOCK" run -b "$url" -k job --connect-timeout 30s -- true {client}>&- &
patient=$!
exec {client}>&-
expect_status 0 wait "$patient"
set_to maxclients 1000

set_to busy-reply-threshold 10
rcli a eval 'while true do end' 0 >/dev/null 2>&1 &
busy() { [[ $(rcli a ping) == BUSY* ]]; }
wait_until 20 busy
refuses 69 'busy with a script of somebody else' "$url"
"$DLOCK" run -b "$url" -k job --connect-timeout 30s -- true &
patient=$!
busy || fail "somebody killed the script of somebody else"
rcli a script kill >/dev/null
expect_status 0 wait "$patient"

start_redis b appendonly yes enable-debug-command yes
rcli b debug populate 100000 >/dev/null
rcli b bgrewriteaof >/dev/null
rewritten() { rcli b info persistence | grep -q '^aof_rewrite_in_progress:0'; }
wait_until 20 rewritten
stop_redis b
setpriv --pdeathsig KILL redis-server "${redis_dir[b]}/redis.conf" --port "${redis_port[b]}" \
  --key-load-delay 200 --loading-process-events-interval-bytes 1024 >/dev/null 2>&1 </dev/null &
redis_pid[b]=$!
loading() { [[ $(rcli b ping 2>&1) == LOADING* ]]; }
wait_until 20 loading
refuses 69 'is still loading its data' "${redis_url[b]}"
loading || fail "the server was not loading for long enough"
"$DLOCK" run -b "${redis_url[b]}" -k job --connect-timeout 30s -- true &
patient=$!
rcli b config set key-load-delay 0 >/dev/null
expect_status 0 wait "$patient"

# A cluster.  Without a cluster-port of its own a server takes its port + 10000, if there is such a port.
bus=
reserve_port bus
start_redis cluster cluster-enabled yes cluster-port "$bus"
refuses 69 'is part of a cluster that is down' "${redis_url[cluster]}"
rcli cluster cluster addslotsrange 0 16383 >/dev/null
up() { rcli cluster cluster info | grep -q '^cluster_state:ok'; }
wait_until 20 up
works "${redis_url[cluster]}"
refuses 64 'is part of a cluster, which has no database but 0' "${redis_url[cluster]}/1"
refuses 69 'it has braces' "${redis_url[cluster]}" -k 'a}b'
