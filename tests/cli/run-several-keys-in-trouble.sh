#!/usr/bin/env bash
# ctest: cost 38
# A run of several keys loses one of them, or its server, or there are too few connections, descriptors or threads: the
# other locks are kept as long as they are needed, and no longer.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
start_redis server maxclients 20
export DLOCK_BACKEND=${redis_url[server]}
break_lock() { "$DLOCK" force-release --yes "$1" >out 2>&1 || fail "cannot break $1: $(<out)"; }
locks() { rcli server --scan --pattern 'dlock:*' | wc -l; }
supervisor_of() {
  local pids
  pids=$(<"/proc/$1/task/$1/children")
  echo "${pids%% *}"
}
job='touch runs; until test -e go; do sleep 0.02; done'
ends() { # STATUS PID
  local status=0
  wait "$2" || status=$?
  assert_equal "$1" "$status" "the status ($(<err))"
  rm -f runs go
}

# With --on-lost ignore the command goes on; what is not lost is renewed, lent to nested runs, and held until these
# have ended, too.
"$DLOCK" run --on-lost ignore --ttl 3 -k a -k b -- sh -c "$job"'
  "$DLOCK" run -n -k b -- sh -c "touch nested; until test -e on; do sleep 0.02; done" &
  until test -e nested; do sleep 0.02; done  # or it comes when the lock is being given up' 2>err &
pid=$!
wait_until 30 test -e runs
break_lock a
wait_until 30 grep -q 'lost "a".*goes on without the lock' err
end=$((SECONDS + 5))
while ((SECONDS < end)); do assert_held b; done
assert_free a
touch go
wait_until 30 test -e nested
ends 79 "$pid"
end=$((SECONDS + 4))
while ((SECONDS < end)); do assert_held b; done
touch on
wait_until 2 is_free b

# Each loss is said, and when all is lost nobody is busy.
"$DLOCK" run --on-lost ignore -k a -k b -- sh -c "$job" 2>err &
pid=$!
wait_until 30 test -e runs
break_lock a
break_lock b
wait_until 30 grep -q 'lost "b"' err
supervisor=$(supervisor_of "$pid")
before=$(switches "$supervisor")
sleep 2
(($(switches "$supervisor") - before < 50)) || fail "$(($(switches "$supervisor") - before)) context switches in 2 s"
touch go
ends 79 "$pid"

# A renewal that was answered too late: the service may have it, so it is given back.
"$DLOCK" run -k b --ttl 60 -- sh -c 'until test -e go; do sleep 0.02; done' &
other=$!
wait_until 30 is_held b
"$DLOCK" run -k a -k b --ttl 6 --kill-after 2.9 -- true 2>err &
pid=$!
wait_until 30 is_held a
first=$(rcli server get dlock:a)
left=6000
renewed() {  # then the next one is due in two seconds
  local before=$left
  left=$(rcli server pttl dlock:a)
  ((left > before))
}
wait_until 30 renewed
rcli server client pause 4000 all >out
wait_until 30 grep -q 'taking all again' err
has_it_again() {  # by another grant, and not the one before, which would last; nobody else may ask for it here
  local id
  id=$(rcli server get dlock:a)
  [[ $id && $id != "$first" ]]
}
wait_until 4 has_it_again
assert_lacks "$(<err)" "waiting for \"a\": held by" "it waits for itself"
touch go
wait "$other"
ends 0 "$pid"

# More keys than the server has room for clients: 69, and nothing is left.
keys=()
for ((i = 0; i < 25; ++i)); do keys+=(-k "key$i"); done
expect_status 69 timeout 20 "$DLOCK" run --connect-timeout 1 "${keys[@]}" -- true 2>err
assert_contains "$(<err)" "maxclients"
wait_until 5 is_free key0
assert_equal 0 "$(locks)" "locks"

# As many as there are descriptors for, or threads: the same.
for limit in 'ulimit -n 50' 'ulimit -n 30' 'ulimit -s 8000000 -v 3000000'; do
  status=0
  (eval "$limit" && exec timeout 20 "$DLOCK" run -w 5 --ttl 60 "${keys[@]:0:24}" -- true) 2>err || status=$?
  [[ $status == @(0|69|70) ]] || fail "$limit: status $status ($(<err))"
  wait_until 5 is_free key0
  assert_equal 0 "$(locks)" "locks with $limit ($(<err))"
done

# Whoever gives up does not wait for a server that is down.
"$DLOCK" run -q -k b --ttl 60 -- sh -c 'until test -e go; do sleep 0.02; done' 2>/dev/null &
other=$!
wait_until 30 is_held b
begun=$(now_ms)
"$DLOCK" run -w 3 -k a -k b --ttl 60 -- true 2>err &
pid=$!
wait_until 30 is_held a
pause_redis server
status=0
wait "$pid" || status=$?
[[ $status == @(69|75) ]] || fail "status $status ($(<err))"
(($(now_ms) - begun < 20000)) || fail "it took $(($(now_ms) - begun)) ms to give up"
resume_redis server
touch go
wait "$other" || true

# A launcher that is stopped while many others hand over: the grant still reaches it.
export DLOCK_BACKEND=file://$locks
rm -f go
holders=()
keys=()
for ((i = 10; i < 50; ++i)); do
  keys+=(-k "key$i")
  "$DLOCK" run -k "key$i" -- sh -c "until test -e go$i; do sleep 0.05; done" &
  holders+=($!)
done
for ((i = 10; i < 50; ++i)); do wait_until 30 is_held "key$i"; done
"$DLOCK" run "${keys[@]}" -- touch runs 2>err &
pid=$!
wait_until 30 has_waiter "$locks/key10"
kill -STOP "$pid"
for ((i = 10; i < 50; ++i)); do
  wait_until 30 has_waiter "$locks/key$i"
  touch "go$i"
done
wait "${holders[@]}"
kill -CONT "$pid"
wait "$pid" || fail "status $? ($(<err))"
[[ -e runs ]] || fail "it did not run"
