#!/usr/bin/env bash
# ctest: cost 40
# Waiters that are stopped (SIGSTOP, docker pause, a suspended laptop) keep their connections open and
# never come when they are called.  One of them holds up the living for three seconds at most, any number
# for ten, on one server and on several.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
for name in a b c; do start_redis "$name"; done
redlock=redlock://127.0.0.1:${redis_port[a]},127.0.0.1:${redis_port[b]},127.0.0.1:${redis_port[c]}

waiting() {
  local name sum=0
  for name in a b c; do ((sum += $(rcli "$name" zcard '{dlock:job}:queue'))) || true; done
  ((sum == $1))
}

is_held() { [[ -n $(rcli a get dlock:job) ]]; }

# try COUNT MOST: so many stopped ones before one that lives, which must be served within MOST ms.
try() {
  local count=$1 most=$2 holder pid supervisor launcher launchers=() pids=() i began
  "$DLOCK" run -q -k job -- sleep 1000 &
  holder=$!
  wait_until 20 is_held
  for ((i = 1; i <= count; ++i)); do
    "$DLOCK" run -q -k job -- true &
    launchers+=($!)
    wait_until 20 waiting "$i"
  done
  "$DLOCK" run -q -k job -- touch served &
  launcher=$!
  wait_until 20 waiting $((count + 1))
  for pid in "${launchers[@]}"; do
    supervisor=$(<"/proc/$pid/task/$pid/children")
    pids+=("$pid" "${supervisor% }")
  done
  kill -STOP "${pids[@]}"
  began=$(now_ms)
  kill "$holder"
  wait_until 60 test -e served
  ((took = $(now_ms) - began)) || true
  printf '%s: %d stopped: %d ms\n' "$DLOCK_BACKEND" "$count" "$took"
  ((took < most)) || fail "$DLOCK_BACKEND: behind $count that are stopped it took $took ms"
  wait "$launcher" || fail "status $?"
  # Those that go on are served, and nothing is left.
  kill -CONT "${pids[@]}"
  wait "${launchers[@]}" || fail "a waiter that was stopped ends with $?"
  wait "$holder" 2>/dev/null || true
  rm served
  wait_until 20 waiting 0
}

for DLOCK_BACKEND in "${redis_url[a]}" "$redlock"; do
  export DLOCK_BACKEND
  try 1 "$(here 3000)"
  try 5 "$(here 10000)"
done
