#!/usr/bin/env bash
# A signal that comes between the grant and the start of the command: the lock is freed, the command
# never started.
. "$(dirname "$0")/lib.sh"

state() { # PID LETTER
  local stat
  read -r stat <"/proc/$1/stat"
  [[ ${stat##*) } == "$2"* ]]
}

for signal in TERM INT HUP QUIT USR1 ALRM; do
  mkfifo "$tmp/go"
  "$DLOCK" run --key k -- sh -c "read -r x <$tmp/go" &
  wait_until 10 is_held k
  # INT and QUIT are ignored in the background jobs of a script: give them back.
  python3 -c 'import os, signal, sys
for s in signal.SIGINT, signal.SIGQUIT: signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$DLOCK" run -q --key k -- touch "$tmp/ran" &
  waiter=$!
  wait_until 10 has_waiter "$locks/k"
  # A stopped front cannot say "go": the supervisor holds the lock now, and waits for that word.
  kill -STOP "$waiter"
  wait_until 10 state "$waiter" T
  echo >"$tmp/go"
  wait %1 || fail "the holder failed"
  wait_until 10 is_held k
  kill -s "$signal" "$waiter"
  kill -CONT "$waiter"
  status=0
  wait "$waiter" || status=$?
  assert_equal $((128 + $(kill -l "$signal"))) "$status" "the status after $signal"
  [[ ! -e $tmp/ran ]] || fail "the command was started in spite of $signal"
  expect_status 0 "$DLOCK" run --key k -n -- true
  rm "$tmp/go"
done
