#!/usr/bin/env bash
# How long a job is remembered for is measured by the clock of the servers, whatever the client's says.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
. "$(dirname "$0")/clock.sh"

cd "$tmp"
start_zk one
new_clock ahead
jump_clock ahead 7200000
export DLOCK_BACKEND=${zk_url[one]}

# ahead COMMAND...: on a machine whose clock is two hours ahead.
ahead() { env CLOCK_SHIM="${clock_file[ahead]}" LD_PRELOAD="$TEST_CLOCK_SHIM" "$@"; }
# is_done: the job is not run again.
is_done() {
  ahead "$DLOCK" once -k job --remember 1h -- touch again || fail "status $?"
  [[ ! -e again ]] || fail "$1: it was run again"
}

# Marks are deleted while the job runs.
"$DLOCK" once -k job --remember 1h -- "$TEST_ZK" "${zk_port[one]}" rmr /dlock/%done || fail "status $?"
is_done "without %done"

# The node that tells the time is missing.
zk one rm /dlock/%done/%clock
is_done "without %clock"

# It belongs to another user: so a job of ours is not run.
printf 'joe:secret' >password
chmod 600 password
"$DLOCK" once -b "$DLOCK_BACKEND?auth_file=$tmp/password" -k joes --remember 1h -- true || fail "status $?"
if "$DLOCK" once -k other --remember 1h -- touch ran 2>err; then fail "no error"; fi
assert_contains "$(<err)" "/dlock/%done/%clock: no permission"
[[ ! -e ran ]] || fail "the command was run"
