#!/usr/bin/env bash
# What dlock once cannot do is refused before anything is started, with one line that says what to do.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

# refused STATUS PART ARGUMENTS...
refused() {
  local want=$1 part=$2
  shift 2
  expect_status "$want" "$DLOCK" once "$@" 2>err
  assert_equal 1 "$(wc -l <err)" "lines of: $* ($(<err))"
  assert_contains "$(<err)" "$part" "$*"
}
refused 64 "add --remember DURATION, for a job that is done once, or --every" -k job -- touch ran
refused 64 "--every: cannot be combined with --remember" -k job --every 1d --remember 1d -- touch ran
refused 64 '"2h" is none of: 1h, 1d, 1w' -k job --every 2h -- touch ran
refused 64 "--remember: \"0\" is out of range; it must be from 1s to 3650d" -k job --remember 0 -- touch ran
refused 64 "--remember" -k job --remember 4000d -- touch ran
refused 64 "dlock once takes one --key; here are 2" -k a -k b --every 1d -- touch ran
refused 64 'unknown option "--shared"' -k job --every 1d --shared -- touch ran
refused 64 'unknown option "--slots"' -k job --every 1d --slots 2 -- touch ran
refused 64 'unknown option "--min-hold"' -k job --every 1d --min-hold 2 -- touch ran
refused 64 "--done-exit-code: \"256\" is not a number from 0 to 255" -k job --every 1d --done-exit-code 256 -- touch ran
refused 64 "--reset runs nothing" -k job --every 1d --reset -- touch ran
refused 64 'no command; put it at the end, behind "--"' -k job --every 1d
refused 64 "which lock? name it" --every 1d -- touch ran
refused 64 "which lock? name it" --every 1d --reset
refused 1 'nothing to forget: "job" is not remembered as done' -k job --reset
refused 1 'nothing to forget: "job" is not remembered as done for ' -k job --every 1d --reset

# Under a run that holds the lock, it could not have it for itself.
expect_status 64 "$DLOCK" run -k job -- "$DLOCK" once -k job --every 1d -- touch ran 2>err
assert_contains "$(<err)" '"job" is held by a dlock that has started this one' "re-entry"
expect_status 64 "$DLOCK" once -k job --every 1d -- "$DLOCK" once -k job --every 1d -- touch ran 2>err
[[ ! -e ran ]] || fail "the command has run"
# A run inside it borrows the lock, and is waited for.
expect_status 0 "$DLOCK" once -k job --every 1d -- "$DLOCK" run -k job -- touch ran
rm ran
expect_status 0 "$DLOCK" once -q -k job --every 1d -- touch ran
[[ ! -e ran ]] || fail "it was done twice"

# Variables and keys of the config file for dlock run do not count.
expect_status 0 env DLOCK_SLOTS=2 DLOCK_MIN_HOLD=100 "$DLOCK" once -k set --every 1d -- true
echo '{"shared": true, "min_hold": 100}' >config
expect_status 0 "$DLOCK" once --config config -k file --every 1d -- true
expect_status 64 "$DLOCK" list --done --output key 2>err
assert_contains "$(<err)" "--done: cannot be combined with --output" "list"
