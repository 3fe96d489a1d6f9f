#!/usr/bin/env bash
# ctest: cost 15
# Waiters sleep while others come and go behind them, while the lock is handed over to those before them, and while
# somebody looks.  Each wakes up every ten seconds, in case the waiter before it is stopped, and to say who holds the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

count() { for ((i = 0; i < $1; ++i)); do echo "$2$i"; done; }
number_waiting() { (($(waiting job) == $1)); }

# In the order in which they come, one after the other: three that get the lock, and those that are watched.
holder first -k job
for name in second third fourth; do waiter $name job -q; done
mapfile -t quiet < <(count 20 quiet)
mapfile -t talking < <(count 3 talking)
for name in "${quiet[@]}"; do waiter "$name" job -q; done
for name in "${talking[@]}"; do waiter "$name" job; done
wait_until 30 number_waiting 26
# What they still do at their start is over when none of them has run for a while.
settled() {
  local before
  mapfile -t quiet_processes < <(for name in "${quiet[@]}"; do tree_of "${pid[$name]}"; done)
  mapfile -t talking_processes < <(for name in "${talking[@]}"; do tree_of "${pid[$name]}"; done)
  before=$(switches "${quiet_processes[@]}" "${talking_processes[@]}")
  sleep 1
  (($(switches "${quiet_processes[@]}" "${talking_processes[@]}") == before))
}
wait_until 60 settled
((${#quiet_processes[@]} >= 20 && ${#talking_processes[@]} >= 3)) || fail "there are no processes"

begun=$EPOCHREALTIME
before=$(switches "${quiet_processes[@]}" "${talking_processes[@]}")
previous=first
for name in second third fourth; do
  for other in come1 come2 come3; do waiter $other job -q; done
  start gives-up -k job -q -w 0.3
  kill -TERM "${pid[come1]}"
  { kill -KILL "${pid[come2]}" && wait "${pid[come2]}"; } 2>/dev/null || true
  ends 75 gives-up
  ends 143 come1
  kill -TERM "${pid[come3]}"
  ends 143 come3
  for i in 1 2 3; do
    "$DLOCK" list >list.out
    "$DLOCK" show job >show.out
  done
  expect_status 75 "$DLOCK" run -q -n -k job -- true
  finish $previous
  runs $name
  previous=$name
done
over_five() { ((${EPOCHREALTIME/./} - ${begun/./} > 5000000)); }
wait_until 30 over_five
# A wake-up may be some switches.
seconds=$(((${EPOCHREALTIME/./} - ${begun/./}) / 1000000))
woken=$(($(switches "${quiet_processes[@]}" "${talking_processes[@]}") - before))
((woken <= 23 * 5 * (seconds / 10 + 1))) || fail "23 waiters: $woken context switches in $seconds s"

# All of them get the lock.
for name in "${quiet[@]}" "${talking[@]}"; do touch "$name.go"; done
finish $previous
ends 0 "${quiet[@]}" "${talking[@]}"
assert_equal 27 "$(wc -l <order)" "how many had the lock"
