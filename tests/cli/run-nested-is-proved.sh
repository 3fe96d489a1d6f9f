#!/usr/bin/env bash
# ctest: cost 30
# A nested run uses the lock of a run above it, and of no other: not that of another container with the same host name
# and pids, nor of a program that another user has put where a supervisor was.  A run of root below a job of another
# user (sudo) uses the lock of that job.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need python3 setpriv unshare
start_redis a
export DLOCK_BACKEND=${redis_url[a]} DLOCK
cd "$tmp"

# Two containers: dlock is pid 1 in both.
if unshare -pm --fork --mount-proc true 2>/dev/null; then
  container() { unshare -pm --fork --kill-child --mount-proc "$@"; }
  container "$DLOCK" run -k job -- sh -c 'touch held; exec sleep 1000' &
  wait_until 30 test -e held
  got=0
  # shellcheck disable=SC2016  # for the inner shell
  container "$DLOCK" run -q -k other -- sh -c '"$DLOCK" run -q -n -k job -- true' || got=$?
  assert_equal 75 "$got" "OVERLAP: status of a nested run for the lock of another container"
  # shellcheck disable=SC2016
  container "$DLOCK" run -q -k third -- sh -c '"$DLOCK" run -q -n -k third -- true' ||
    fail "a nested run in a container does not have the lock of the run above it"
  kill %1
  wait %1 || true
else
  echo "not tried: no pid namespaces to be had"
fi

# An owner id that somebody has copied to another lock is not lent there.
copy() {
  rcli a copy dlock:held dlock:copy
  rcli a copy '{dlock:held}:owner' '{dlock:copy}:owner'
}
"$DLOCK" run -q -k held -- sh -c 'touch is-held; while [ ! -e copied ]; do sleep 0.02; done
  "$DLOCK" run -q -n -k copy -- touch OVERLAP; echo $? >copy.status
  "$DLOCK" run -q -n -k held -- touch borrowed' 2>/dev/null &
wait_until 30 test -e is-held
copy >/dev/null
touch copied
wait %% || true
assert_equal 75 "$(<copy.status)" "OVERLAP: status of a nested run for a lock to which the owner id was copied"
test -e borrowed || fail "a nested run does not borrow the lock that its outer run holds"

# What is allowed for a run alone is allowed for a nested one.
times=(--ttl 10s --kill-after 4.5s)
expect_status 0 "$DLOCK" run -q -k times "${times[@]}" -- "$DLOCK" run -k times "${times[@]}" -- true

# A job that starts itself again by at(1) does not pass on ever more addresses.
many=$(printf '0123456789abcdef0123456789abcdef,%.0s' {1..3970})
# shellcheck disable=SC2016
DLOCK_SUPERVISORS=${many%,} "$DLOCK" run -q -k many -- sh -c 'echo ${#DLOCK_SUPERVISORS} >length; "$DLOCK" run -q -n -k many -- true' ||
  fail "status $? below many runs that have ended"
(($(<length) < 102000)) || fail "the command gets $(<length) bytes of addresses"

# With few descriptors, many nested runs at once borrow the lock one after the other, or fail; none waits for its own job.
cat >many <<'SH'
#!/bin/sh
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
  { "$DLOCK" run -q -k many --connect-timeout 2 -- sleep 0.1; echo $? >>statuses; } 2>/dev/null &
done
wait
SH
chmod +x many
(ulimit -n 24 && exec timeout -k 1 60 "$DLOCK" run -q -k many -- ./many) || fail "nested runs wait for their own job"
assert_equal 14 "$(wc -l <statuses)" "nested runs that have ended"
grep -qx 0 statuses || fail "no nested run has the lock: $(<statuses)"
if grep -qvE '^(0|69|70)$' statuses; then fail "statuses of nested runs: $(<statuses)"; fi

((EUID == 0)) || exit 0
chmod 711 .
cp "$DLOCK" dlock
cp "$(command -v setpriv)" become-root
chmod 4755 become-root
as_nobody() { exec setpriv --reuid 65534 --clear-groups env HOME=/ "$@"; }

# sudo.
(as_nobody ./dlock run -q -k sudo -- ./become-root --reuid 0 ./dlock run -q -n -k sudo -- sh -c '[ "$(id -u)" = 0 ]') ||
  fail "a nested run of root does not have the lock of the job above it"
# The other way: a run of another user below a job of root is lent nothing.
expect_status 75 ./dlock run -q -k su -- setpriv --reuid 65534 --clear-groups env HOME=/ ./dlock run -q -n -k su -- true

# Another user listens where a supervisor was, and says yes to everything.
cat >liar.py <<'PYTHON'
import socket, struct, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0dlock-" + sys.argv[1])
listener.listen()
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    while question := connection.recv(1000):
        print("asked", flush=True)
        connection.send(question[64:72] + struct.pack("qq", -1, 30000))
PYTHON
chmod 644 liar.py
address=0123456789abcdef0123456789abcdef
as_nobody python3 liar.py $address >liar &
wait_until 30 test -s liar
# shellcheck disable=SC2016  # for the inner shell
"$DLOCK" run -q -k hostile -- sh -c 'echo "$DLOCK_TOKEN" >token; exec sleep 1000' &
wait_until 30 test -s token
above=$address,+$(<token)
expect_status 75 env DLOCK_SUPERVISORS="$above" "$DLOCK" run -q -n -k hostile -- true
assert_equal ready "$(<liar)" "what another user's program was asked"
# The program does lie, if it may: to a run of its own user.
(as_nobody env DLOCK_SUPERVISORS="$above" ./dlock run -q -n -k hostile -- true) || fail "the test's own program cannot lend"

# Or nobody accepts there, and the backlog is full: no run is held up for a lock that was not held there, on this machine
# or on another.
cat >full.py <<'PYTHON'
import socket, sys, time
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0dlock-" + sys.argv[1])
listener.listen(0)
first = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
first.connect("\0dlock-" + sys.argv[1])
print("ready", flush=True)
time.sleep(1000)
PYTHON
chmod 644 full.py
# shellcheck disable=SC2016  # for the inner shell
"$DLOCK" run -q -k ended -- sh -c 'echo "$DLOCK_SUPERVISORS" >ended'
above=$(<ended)
as_nobody python3 full.py "${above%%,*}" >full &
wait_until 30 test -s full
nested=(env DLOCK_SUPERVISORS="$above" "$DLOCK" run -q -n --connect-timeout 20)
begun=$(now_ms)
expect_status 75 "${nested[@]}" -k hostile -- true
expect_status 0 "${nested[@]}" -k free -- true
if unshare --uts true 2>/dev/null; then
  # shellcheck disable=SC2016
  unshare --uts sh -c 'hostname elsewhere; exec "$DLOCK" run -q -k far -- sleep 1000' &
  wait_until 30 is_held far
  expect_status 75 "${nested[@]}" -k far -- true
fi
(($(now_ms) - begun < 15000)) || fail "they were held up"
