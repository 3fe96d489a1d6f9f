#!/usr/bin/env bash
# While the command runs, neither process of dlock wakes up; nor do those of a waiter.
. "$(dirname "$0")/lib.sh"

tree() { # PID: it and its descendants
  local child children
  echo "$1"
  read -ra children < <(cat "/proc/$1/task"/*/children 2>/dev/null) || true
  for child in "${children[@]}"; do tree "$child"; done
}
switches() { # of every thread of the processes of dlock
  local pid task total=0 n
  for pid in "$@"; do
    for task in /proc/"$pid"/task/*/status; do
      n=$(awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n + 0 }' "$task")
      total=$((total + n))
    done
  done
  echo "$total"
}
of_dlock() { # PID: those processes of its tree that are dlock
  local pid
  for pid in $(tree "$1"); do
    [[ $(readlink "/proc/$pid/exe") == "$(readlink -f "$DLOCK")" ]] && echo "$pid"
  done
  return 0
}

"$DLOCK" run --key k -- sleep 1000 &
holder=$!
wait_until 10 is_held k
"$DLOCK" run -q --key k -- true &
waiter=$!
wait_until 10 has_waiter "$locks/k"
# The holder subscribes to its revocation after a second; then nothing is left to be done.
sleep 2
mapfile -t pids < <(of_dlock "$holder"; of_dlock "$waiter")
((${#pids[@]} >= 4)) || fail "only ${#pids[@]} processes of dlock found"
before=$(switches "${pids[@]}")
sleep 5
after=$(switches "${pids[@]}")
assert_equal 0 $((after - before)) "wake-ups of holder and waiter in 5 s"
kill "$waiter"
