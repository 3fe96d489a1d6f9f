#!/usr/bin/env bash
# Whoever gives up waiting for a lock on ZooKeeper, however that comes, leaves no node behind: at once
# when it still can, and else by the end of its session.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
need pgrep

cd "$tmp"
start_zk a
start_proxy p "${zk_port[a]}"
export DLOCK_BACKEND=${zk_url[a]}
queue() { zk a ls /dlock/job | wc -l; }
queue_is() { (($(queue) == $1)); }

hold --ttl 30s
assert_equal 1 "$(queue)" "nodes of a holder"

# Nothing to wait for.
try 75 -n -k job -- false
assert_equal 1 "$(queue)" "nodes after -n"
try 75 -w 0.3 -k job -- false
assert_equal 1 "$(queue)" "nodes after a wait that ran out"

# Signals, of which none starts the job.
for signal in TERM INT HUP QUIT; do
  # What bash starts in the background ignores SIGINT and SIGQUIT.
  env --default-signal "$DLOCK" run -q -k job -- touch ran &
  waiter=$!
  wait_until 20 queue_is 2
  kill -s "$signal" "$waiter"
  expect_status $((128 + $(kill -l "$signal"))) wait "$waiter"
  assert_equal 1 "$(queue)" "nodes after SIG$signal"
done
[[ ! -e ran ]] || fail "a job ran without the lock"

# A launcher that is killed leaves a supervisor that tidies up; both leave a session that expires.
"$DLOCK" run -q -k job -- touch ran &
waiter=$!
wait_until 20 queue_is 2
kill -KILL "$waiter"
wait "$waiter" 2>/dev/null || true
wait_until 3 queue_is 1
"$DLOCK" run -q -k job --ttl 2 -- touch ran &
waiter=$!
wait_until 20 queue_is 2
kill -STOP "$waiter"
kill -KILL "$(pgrep -P "$waiter")" "$waiter"
wait "$waiter" 2>/dev/null || true
wait_until 10 queue_is 1

# The connection is cut just when it gives up.
for ((i = 0; i < 5; ++i)); do
  "$DLOCK" run -q -b "zookeeper://127.0.0.1:${proxy_port[p]}" -k job -- touch ran &
  waiter=$!
  wait_until 20 queue_is 2
  proxy p cut
  kill -TERM "$waiter"
  expect_status 143 wait "$waiter"
  wait_until 3 queue_is 1
done

# An error: another mode.
try 64 -k job --slots 3 -- false
assert_equal 1 "$(queue)" "nodes after a refusal"

release
assert_equal 0 "$(queue)" "nodes that are left"
[[ ! -e ran ]] || fail "a job ran without the lock"
