#!/usr/bin/env bash
# dlock once below a dlock that holds its lock is refused, a run below dlock once borrows the lock, and what is set for
# dlock run does not count.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

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
expect_status 0 env DLOCK_MIN_HOLD=100 "$DLOCK" once -k set --every 1d -- true
echo '{"min_hold": 100}' >config
expect_status 0 "$DLOCK" once --config config -k file --every 1d -- true

