#!/usr/bin/env bash
# ctest: every kind of backend
# What dlock once remembers is a command that has exited with 0 under the lock, and nothing else: whoever waits runs
# it after one that was killed, was ended by --max-hold, could not be started, or whose dlock was killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
[[ ${trait[ids]} == true ]] || exit 0  # see once-is-done-once.sh
export DLOCK_QUIET=1 DLOCK_TTL=4s

once=("$DLOCK" once -k job --remember 1h)
once() { "${once[@]}" "$@"; }
not_done() { assert_equal "" "$("$DLOCK" list --done)" "remembered after $1"; }

expect_status 143 once -- sh -c 'kill $$'
not_done "a signal"
expect_status 124 once --max-hold 0.2 -- sleep 100
not_done "--max-hold"
expect_status 127 once -- ./missing 2>err
not_done "a command that is not there"

# What dlock was told to end is not done, whatever the command says, or left behind for --leftovers and nested runs.
ended_by_term() {
  rm -f started work
  "${once[@]}" "$@" 2>err &
  local dlock=$! status=0
  wait_until 30 test -e started
  kill "$dlock"
  wait "$dlock" || status=$?
  assert_equal 143 "$status" "the status of a job that was told to end ($(<err))"
  [[ ! -e work ]] || fail "the job was not ended"
  not_done "a SIGTERM: $*"
}
ended_by_term -- bash -c 'trap "exit 0" TERM; touch started; sleep 100 & wait'
ended_by_term --leftovers wait -- sh -c '(sleep 100; touch work) & touch started'
ended_by_term -- bash -c '"$DLOCK" run -k job -- sh -c "touch started; sleep 100; touch work" & until [[ -e started ]]; do sleep 0.02; done'

# Who waits runs it when the one before was killed, command and all.
rm -f held.*
cat >wait-for-it <<'SH'
#!/bin/bash
echo "$BASHPID" >"held.$1"
exec 9<> <(:)
until [[ -e $1.go ]]; do read -rt 0.02 -u 9 || :; done
SH
chmod +x wait-for-it
"${once[@]}" -- ./wait-for-it one &
one=$!
wait_until 30 test -s held.one
"${once[@]}" -- ./wait-for-it two &
two=$!
waits() { [[ $("$DLOCK" show --output waiting job | tail -n 1) == 1 ]]; }
wait_until 30 waits
kill -9 "$one"
wait "$one" || true
wait_until 60 test -s held.two
not_done "a dlock that was killed"
touch two.go
expect_status 0 wait "$two"
expect_status 0 once -- false

# A force-release is a loss.
expect_status 0 once --reset
"${once[@]}" -- ./wait-for-it three 2>err &
three=$!
wait_until 30 test -s held.three
expect_status 0 "$DLOCK" force-release --yes job
expect_status 79 wait "$three"
not_done "a loss"

# With -n and --wait somebody who comes too early gives up.
"${once[@]}" -- ./wait-for-it four &
four=$!
wait_until 30 test -s held.four
expect_status 75 once -n -- true
expect_status 75 once --wait 0.2 -- true
expect_status 33 once -n -E 33 -- true
assert_contains "$("$DLOCK" list -o kind)" once "the kind of the holder"
# A reset now changes nothing.
expect_status 1 once --reset 2>/dev/null
touch four.go
expect_status 0 wait "$four"
expect_status 0 once --done-exit-code 0 -- false
expect_status 9 once --done-exit-code 9 --status-file status -- false
assert_contains "$(<status)" '"outcome":"done"' "the status file"
assert_contains "$(<status)" 'was done ' "the status file"
