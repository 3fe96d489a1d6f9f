#!/usr/bin/env bash
# Slots on three redlock servers need two of them, as an exclusive lock does.  Each holder has a number of its own, and
# a waiter gets the number that is released.  A server that is still to free the exclusive lock is waited for, and is no
# conflict.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redlock a b c
export DLOCK_BACKEND=redlock://$servers
cat >job <<'SH'
#!/bin/bash
echo "$DLOCK_SLOT" >"$1.slot"
exec 9<> <(:)
until [[ -e $1.go ]]; do read -rt 0.02 -u 9 || :; done
SH
chmod +x job
declare -A pid
start() {
  "$DLOCK" run -q -k job --slots 2 -- ./job "$1" 2>"$1.err" &
  pid[$1]=$!
}
finish() {
  touch "$1.go"
  wait "${pid[$1]}" || fail "$1 ended with status $?: $(<"$1.err")"
}
# At the server whose name is the first; the ports are any.
is_queued() {
  local name
  for name in a b c; do [[ $(rcli "$name" zcard '{dlock:job}:queue' 2>/dev/null) != 1 ]] || return 0; done
  return 1
}
numbers() { cat "$@" | sort | xargs; }

"$DLOCK" run -k job --slots 2 -- true 2>err || fail "status $?"
assert_equal "" "$(<err)" "what it says"

for down in none c; do
  rm -f ./*.go ./*.slot
  [[ $down == none ]] || stop_redis "$down"
  start one
  start two
  wait_until 20 test -s one.slot
  wait_until 20 test -s two.slot
  assert_equal "1 2" "$(numbers one.slot two.slot)" "the numbers, $down is down"
  expect_status 75 "$DLOCK" run -q -n -k job --slots 2 -- true
  start three
  wait_until 20 is_queued
  finish two
  wait_until 20 test -s three.slot
  assert_equal "$(<two.slot)" "$(<three.slot)" "the number of the waiter, $down is down"
  finish one
  finish three
done
restart_redis c

# A server that has not heard of the release yet.
for ((i = 0; i < 10; ++i)); do
  rcli c set dlock:job left px 300 >/dev/null
  rcli c set '{dlock:job}:owner' '{}' px 300 >/dev/null
  "$DLOCK" run -q -k job --slots 2 -- true 2>err || fail "status $?: $(<err)"
done
# All of them have: that is a conflict, at once.
# shellcheck disable=SC2119  # no arguments
hold
is_held_everywhere() { [[ -n $(rcli a get dlock:job) && -n $(rcli b get dlock:job) && -n $(rcli c get dlock:job) ]]; }
wait_until 20 is_held_everywhere
expect_status 64 "$DLOCK" run -k job --slots 2 -- true
release
