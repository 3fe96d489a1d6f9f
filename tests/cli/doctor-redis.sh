#!/usr/bin/env bash
# What dlock doctor finds wrong with a Redis server, each provoked on one; what it says to paste mends it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/doctor.sh"
need python3
cd "$tmp"
unset DLOCK_BACKEND

# A server as it should be: nothing to complain of.
start_redis good appendonly yes appendfsync always requirepass sesame
(umask 077 && echo sesame >password)
doctor 0 -b "${redis_url[good]}" --password-file password --strict
for name in server round-trip clock role eviction persistence; do finds ok "redis-$name"; done
for name in acquire renew show list release wake-a-waiter force-release done-mark; do finds ok "try-$name"; done
finds ok outage 'TTL 30s: a job survives an outage of 15s'
finds_no redis-password
assert_lacks "$(<out)" sesame "the output"
doctor 77 -b "${redis_url[good]}"
finds FAIL redis-connect 'needs a password'
finds_no try-acquire

start_redis server
url=${redis_url[server]}
# mend: runs the line that is printed under the finding NAME, without its remark.
mend() {
  local line
  line=$(grep -EA2 "^[a-zA-Z]+ +$1 " out | sed -n 's/^ *\(redis-cli [^#]*\).*/\1/p')
  [[ -n $line ]] || fail "nothing to paste under $1 in $(<out)"
  bash -c "$line" >pasted
  [[ -s pasted ]] || fail "$line prints nothing"
  ! grep -vx OK pasted || fail "$line: $(<pasted)"
}

doctor 0 -b "$url"
finds note redis-password
finds warn redis-persistence 'nothing is saved to disk'
doctor 1 -b "$url" --strict
mend redis-persistence
doctor 0 -b "$url" --strict
finds ok redis-persistence 'appendonly yes, appendfsync always'

rcli server config set appendonly no >/dev/null
rcli server config set save '3600 1' >/dev/null
doctor 0 -b "$url"
finds warn redis-persistence 'snapshots only'
mend redis-persistence

rcli server config set maxmemory-policy allkeys-lru >/dev/null
doctor 0 -b "$url"
finds note redis-eviction 'maxmemory-policy allkeys-lru, and no maxmemory'
rcli server config set maxmemory 100mb >/dev/null
doctor 1 -b "$url"
finds FAIL redis-eviction 'maxmemory-policy allkeys-lru'
mend redis-eviction
doctor 0 -b "$url" --strict

# A primary with a replica, and the replica.
start_replica replica server
wait_until 20 eval 'rcli server info replication | grep -q connected_slaves:1'
doctor 0 -b "$url"
finds warn redis-replicas '1 replica'
doctor 1 -b "${redis_url[replica]}"
finds FAIL redis-role 'a replica of 127.0.0.1'

# A user who lacks rights: of INFO and CONFIG, then of a lock.
rights=('~dlock:*' '~{dlock:*' '&{dlock:*' +@all -info -config)
rcli server acl setuser poor on '>sesame' "${rights[@]}" >/dev/null
poor=redis://poor@127.0.0.1:${redis_port[server]}
doctor 0 -b "$poor" --password-file password
finds note redis-rights 'may not ask INFO'
advises "redis-cli -h 127.0.0.1 -p ${redis_port[server]} --user default --askpass ACL SETUSER poor +info '+config|get'    # or run dlock doctor as an admin"
finds note redis-password 'no password is needed'  # of others
finds ok try-done-mark
rcli server acl setuser poor -publish >/dev/null
"$DLOCK" doctor -b "$poor" --password-file password >out 2>err
finds warn try-wake-a-waiter
rcli server acl setuser poor -zadd -set >/dev/null
doctor 77 -b "$poor" --password-file password
finds FAIL try-acquire "the user may not do this"
mend try-acquire
doctor 0 -b "$poor" --password-file password
finds ok try-done-mark
finds ok redis-server
assert_lacks "$(<out)" sesame "the output"

# A clock that is 3 s off.
new_clock wrong
start_redis wrong
doctor 0 -b "${redis_url[wrong]}"
finds ok redis-clock
jump_clock wrong 3000
doctor 0 -b "${redis_url[wrong]}"
finds warn redis-clock '3s ahead of the clock of this machine'
jump_clock wrong -8000
doctor 0 -b "${redis_url[wrong]}"
finds warn redis-clock '5s behind the clock of this machine'

# Nobody there, and a server that is silent: within the connect timeout.
doctor 69 -b redis://127.0.0.1:1
finds FAIL redis-connect 'connection refused'
pause_redis wrong
doctor 69 -b "${redis_url[wrong]}" --connect-timeout 300ms
finds FAIL redis-connect 'no answer'
# A signal that is ignored, as nohup does, ends nothing.
(
  trap '' HUP
  exec "$DLOCK" doctor -b "${redis_url[wrong]}" --connect-timeout 1s >out
) &
doctor=$!
sleep 0.3  # at any instant
kill -s HUP "$doctor"
expect_status 69 wait "$doctor"

# A name behind which are two servers: each grants the lock.  One whose SCAN takes long: only that is left out.
cat >between.py <<'PY'
import itertools, socket, sys, threading, time
here = socket.create_server(("127.0.0.1", 0))
print(here.getsockname()[1], flush=True)
def pass_on(source, target):
    while data := source.recv(65536):
        if b"$4\r\nSCAN\r\n" in data:
            time.sleep(2)
        target.sendall(data)
    target.close()
for port in itertools.cycle(sys.argv[1:]):
    client, _ = here.accept()
    server = socket.create_connection(("127.0.0.1", int(port)))
    threading.Thread(target=pass_on, args=(server, client), daemon=True).start()
    threading.Thread(target=pass_on, args=(client, server), daemon=True).start()
PY
start_redis other
python3 between.py "${redis_port[server]}" "${redis_port[other]}" >two &
python3 between.py "${redis_port[server]}" >slow &
wait_until 20 test -s two -a -s slow
doctor 1 -b "redis://127.0.0.1:$(<two)"
finds FAIL try-wake-a-waiter 'two holders at once'
doctor 0 -b "redis://127.0.0.1:$(<slow)"
finds note try-list 'not done in 1s'
finds ok try-done-mark
