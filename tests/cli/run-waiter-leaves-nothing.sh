#!/usr/bin/env bash
# A waiter that is sent away (SIGTERM, SIGINT, SIGHUP, its --wait, timeout(1)) is gone at once, with
# the right status, leaves no process, and the lock works on as if it had never come.
. "$(dirname "$0")/lib.sh"

cd "$tmp"
mark=dlock-waiter-$$

processes_of_waiter() { grep -lzsxF "MARK=$mark" /proc/[0-9]*/environ || true; }
none_left() { [[ -z $(processes_of_waiter) ]]; }
waits() { "$DLOCK" show job | sed -n '/^  Waiting/,$p' | grep -q ", pid $1,"; }

# leaves STATUS WHAT: the waiter ends with this status and nothing is left of it.
leaves() {
  local want=$1 got=0 started=$EPOCHSECONDS
  wait "$waiter" || got=$?
  assert_equal "$want" "$got" "exit status of a waiter that $2"
  ((EPOCHSECONDS - started <= 10)) || fail "a waiter that $2 took $((EPOCHSECONDS - started)) s"
  none_left || fail "a waiter that $2 left a process: $(processes_of_waiter)"
  [[ ! -e ran ]] || fail "a waiter that $2 ran its command"
  got=0
  "$DLOCK" run -q -n -k job -- true || got=$?
  assert_equal 75 "$got" "status of dlock run -n: the holder holds it still when a waiter $2"
}

wait_as() { # MODE...
  env --default-signal MARK="$mark" "$DLOCK" run -k job "$@" -- touch ran 2>err &
  waiter=$!
  wait_until 30 waits "$waiter"
}

for signal in TERM INT HUP QUIT USR1; do
  hold
  for mode in '' --shared; do
    # shellcheck disable=SC2086  # none if empty
    wait_as $mode
    kill -"$signal" "$waiter"
    leaves $((128 + $(kill -l "$signal"))) "got SIG$signal"
  done
  release
  expect_status 0 "$DLOCK" run -n -k job -- true
done

# Slots: one waits for any slot, the next one behind it.
hold --slots 1
wait_as --slots 1
first=$waiter
wait_as --slots 1
kill -TERM "$first" "$waiter"
got=0
wait "$first" || got=$?
assert_equal 143 "$got" "exit status of a waiter for slots that got SIGTERM"
got=0
wait "$waiter" || got=$?
assert_equal 143 "$got" "exit status of the next waiter for slots that got SIGTERM"
none_left || fail "a waiter for slots that got SIGTERM left a process: $(processes_of_waiter)"
release
expect_status 0 "$DLOCK" run -n -k job --slots 1 -- true
expect_status 0 "$DLOCK" run -n -k job -- true

# The time is over.
hold
MARK=$mark "$DLOCK" run -k job -w 0.5 -- touch ran 2>err &
waiter=$!
leaves 75 "waited for as long as it was to"
assert_contains "$(tail -n 1 err)" 'dlock: gave up after 500ms: "job" is held by '
MARK=$mark timeout 1 "$DLOCK" run -k job -- touch ran 2>err &
waiter=$!
got=0
wait "$waiter" || got=$?
assert_equal 124 "$got" "exit status of timeout 1 dlock run"
wait_until 10 none_left
[[ ! -e ran ]] || fail "a waiter ran its command after timeout(1) had ended it"

# Killed outright: the rest of it is gone in a moment.
wait_as
{ kill -KILL "$waiter" && wait "$waiter"; } 2>/dev/null || true
wait_until 10 none_left
release

# Those that stay are served.
hold
wait_as
"$DLOCK" run -q -k job -- touch stayed &
other=$!
wait_until 30 waits "$other"
kill -INT "$waiter"
leaves 130 "got SIGINT before another waiter"
[[ ! -e stayed ]] || fail "OVERLAP: a waiter ran beside the holder when another waiter left"
release
wait "$other" || fail "the waiter that stayed ended with status $?"
[[ -e stayed ]] || fail "the waiter that stayed did not run its command"
expect_status 0 "$DLOCK" run -n -k job -- true
