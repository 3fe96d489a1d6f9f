#!/usr/bin/env bash
# ctest: cost 25
# ctest: every kind of backend
# With --min-hold the caller is back at once, and the lock is held until then and no longer, whatever its ttl: a lease is
# shortened before the caller is back, and no process stays behind, since in a container nobody outlives the caller.
# Where the lock ends with a connection or a session, a process stays until then.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
[[ ${trait[ends_on]} != exit ]] || exit 0  # see run-min-hold.sh

mark=dlock-min-hold-$$
none_left() { [[ -z $(grep -lzsxF "MARK=$mark" /proc/[0-9]*/environ || true) ]]; }

# Soon after the caller is back.
is_shown_as_ended() {
  "$DLOCK" show --json job >shown
  grep -q '"ended": true' shown
}
# held OPTIONS: the caller is back before the lock is free, which it is 3 s after the start; others see that the command has
# ended, and no process to be killed.
held() {
  local begun got=0 took pid
  begun=$(now_ms)
  env MARK="$mark" "$DLOCK" run -k job --min-hold 3 "$@" -- sh -c 'exit 7' || got=$?
  assert_equal 7 "$got" "exit status with $*"
  if [[ ${trait[ends_on]} == ttl ]]; then
    wait_until 2 none_left  # and not until the lock is free
    is_shown_as_ended || fail "the record says that the command runs, with $*"
  fi
  wait_until 2 is_shown_as_ended
  pid=$(sed -n 's/^ *"pid": \([0-9]*\).*/\1/p' shown)
  [[ -z $pid ]] || ! gone "$pid" || fail "show names process $pid, which has ended, with $*"
  assert_held job
  expect_status 0 "$DLOCK" run -k job -w 60 -- true 2>waiting
  took=$(($(now_ms) - begun))
  assert_contains "$(<waiting)" 'ended' "what a waiter says, with $*"
  ((took >= 3000)) || fail "free after $took ms, with $*"
  ((took < 10000)) || fail "free after $took ms only, with $*"
  wait_until 10 none_left
}

held --ttl 2s
held --ttl 60s --shared

# on_time LATEST WAITER: it runs when --min-hold 4 is over, by $begun, and not much later.
on_time() {
  runs "$2"
  local took=$(($(now_ms) - begun))
  ((took >= 3000 && took < $(here "$1"))) || fail "$2 had the lock after $took ms instead of 4000"
  finish "$2"
}
# Waiters that began to wait while the command ran hear of the new end: one alone, with all modes; the second, when the
# first gives up or is killed after that.
for mode in --shared '--slots 1'; do
  begun=$(now_ms)
  # shellcheck disable=SC2086  # no word or two
  holder a -k job --ttl 60s --min-hold 4 $mode
  [[ $mode != --shared ]] || mode=
  # shellcheck disable=SC2086
  waiter b job $mode
  finish a
  on_time 7000 b
done
for how in TERM KILL; do
  begun=$(now_ms)
  holder a -k job --ttl 60s --min-hold 4
  waiter b job
  waiter c job
  finish a
  wait_until 2 is_shown_as_ended
  kill -$how "${pid[b]}"
  on_time 12000 c
done

# Nothing ran, nothing to keep the lock for.
try 127 -q -k job --min-hold 300 -- "$tmp/missing"
assert_free job
