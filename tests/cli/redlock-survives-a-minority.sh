#!/usr/bin/env bash
# A redlock job goes on while two of five servers are stopped, empty or dead, and is ended in time when
# a third one goes.  With three gone nobody gets in, and is told at once which they are.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redlock a b c d e
export DLOCK_BACKEND=redlock DLOCK_SERVERS=$servers
value() { rcli "$1" get dlock:job; }
has_lock() { [[ -n $(value "$1") ]]; }

# --- at the start

pause_redis a
pause_redis c
"$DLOCK" run -q -k other -- true || fail "two of five are stopped, and status $?"
resume_redis a
resume_redis c

# --- while the job runs

cat >job.sh <<'SH'
#!/bin/sh
touch started
while :; do date +%s%3N >alive.new && mv alive.new alive; sleep 0.05; done
SH
chmod +x job.sh
"$DLOCK" run -k job --ttl 2s --status-file status -- ./job.sh 2>err &
holder=$!
wait_until 20 test -e started
id=$(value e)

stop_redis a
restart_redis b  # without its data
# Two ttls: the lock is there only because it was renewed.
sleep 4
assert_equal "$id" "$(value c)" "the lock on a server that is well"
wait_until 20 has_lock b  # given again
gone "$holder" && fail "the job was ended, with two of five servers gone: $(<err)"
assert_lacks "$(<err)" lost

restart_redis a
expect_status 75 "$DLOCK" run -q -n -k job -- true
fence=$("$DLOCK" run -q -k third -- sh -c 'echo "$DLOCK_FENCE"')
((fence > 0)) || fail "no token with all servers there"

for name in c d e; do pause_redis "$name"; done
paused=$(now_ms)
wait_until 20 gone "$holder"
status=0
wait "$holder" || status=$?
assert_equal 79 "$status" "exit status when three of five are stopped"
# The last renewal was at the latest when they were stopped; 2 % and 2 ms are not trusted.
((took = $(<alive) - paused, took < 2000 - 42)) || fail "the job was alive $took ms after the servers stopped"
assert_contains "$(<err)" "lost \"job\""
assert_contains "$(<status)" '"outcome":"lost"'

# --- three gone

before=$(now_ms)
expect_status 69 "$DLOCK" run -k job --connect-timeout 1s -- true 2>err
((took = $(now_ms) - before, took < 5000)) || fail "it took $took ms to say that the servers are gone"
assert_contains "$(<err)" "2 of 5 servers answered, 3 are needed"
for name in c d e; do
  assert_contains "$(<err)" "redis 127.0.0.1:${redis_port[$name]}: "
done
for name in c d e; do resume_redis "$name"; done
wait_until 10 "$DLOCK" run -q -n -k job --ttl 2s -- true
