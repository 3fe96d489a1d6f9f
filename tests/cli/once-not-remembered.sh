#!/usr/bin/env bash
# The command has succeeded, and the service cannot be told: that is status 69, and a message that says so.  A reply
# that is lost is asked for again.
. "$(dirname "$0")/lib.sh"
cd "$tmp"
export DLOCK_BACKEND="faulty://$tmp/control?wrap=memory://$tmp/store" DLOCK_TTL=3s DLOCK_KILL_AFTER=0.2
once=("$TEST_DLOCK" once -k job --remember 1h --status-file status)
once() { "${once[@]}" "$@"; }
forget() {
  rm -f control
  once --reset 2>/dev/null || fail "nothing was remembered"
}
marks() { "$TEST_DLOCK" list --done 2>/dev/null | sed 1d | wc -l; }

# Not for a while.
echo 'complete unreachable 2' >control
expect_status 0 once -- true 2>err
assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
assert_contains "$(<err)" 'cannot remember yet that "job" is done, trying for ' "stderr"
assert_equal 1 "$(marks)" "marks"
forget

# Not until the lease is over.
echo 'complete unreachable' >control
expect_status 69 once -- true 2>err
assert_contains "$(<err)" 'true succeeded, but it could not be remembered that "job" is done, so it may be run again' "stderr"
assert_contains "$(<status)" '"outcome":"unreachable"' "status file"
assert_contains "$(<status)" '"exit_status":69' "status file"
rm control
expect_status 0 once --wait 10 -- touch again 2>err  # the lease ends by itself
[[ -e again ]] || fail "the next one did not run it"
forget

# The service says no: at once, and the lock is free.
echo 'complete denied' >control
before=$(now_ms)
expect_status 69 once -- true 2>err
(($(now_ms) - before < $(here 1500))) || fail "tried for as long as the lease lasts"
assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
rm control
expect_status 0 "$TEST_DLOCK" run -n -k job -- true
assert_equal 0 "$(marks)" "marks"

# Lost in the last moment.
echo 'complete lost' >control
expect_status 79 once -- true 2>err
assert_contains "$(<err)" 'could not be remembered' "stderr"
assert_contains "$(<status)" '"outcome":"lost"' "status file"
rm control

# What is needed to remember it is made before the command is run.
echo 'prepare_marks denied' >control
expect_status 77 once -- touch ran 2>err
[[ ! -e ran ]] || fail "it was run in vain"
# Whether it is done cannot be told: as any outage.  Under the lock nothing has run yet: that is an error.
echo 'find_mark unreachable 3' >control
expect_status 0 once --wait 20 -- touch ran 2>err
[[ -e ran ]] || fail "not run"
rm ran
forget
echo 'prepare_marks unreachable' >control
expect_status 69 once --wait 20 -- touch ran 2>err
[[ ! -e ran ]] || fail "it was run in vain"
assert_contains "$(<err)" 'cannot tell whether "job" is done, or remember it: ' "stderr"
echo 'find_mark unreachable' >control
expect_status 69 once --wait 0.5 -- true 2>err
expect_status 69 once -n -- true 2>err

# What comes between the command's end and the answer of the service: only a signal that asks to end makes it give up.
signalled_while_remembering() {
  rm -f err control.log
  echo 'complete unreachable 4' >control
  DLOCK_TTL=20s "${once[@]}" -- true 2>err &
  local pid=$!
  wait_until 20 grep -q 'cannot remember yet' err
  kill "$1" "$pid"
  status=0
  wait "$pid" || status=$?
}
for signal in -CONT -WINCH -USR1; do
  signalled_while_remembering "$signal"
  assert_equal "0 1" "$status $(marks)" "status and marks after $signal"
  forget
done
signalled_while_remembering -TERM
assert_equal "69 0" "$status $(marks)" "status and marks after a SIGTERM"
