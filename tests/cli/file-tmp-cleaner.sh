#!/usr/bin/env bash
# systemd-tmpfiles deletes what is old in /tmp, but nothing below a directory that somebody has flocked: a holder has, and
# a waiter, and nobody else.  Who cannot have that has the lock all the same.
. "$(dirname "$0")/lib.sh"
need flock
cd "$tmp"

is_cleaned() { flock -n -x "$locks" true; }

# shellcheck disable=SC2119  # no arguments
hold
if is_cleaned; then fail "the directory of a holder is cleaned"; fi
"$DLOCK" run -q -k job -- true &
waiter=$!
wait_until 30 has_waiter "$locks/job"
release
expect_status 0 wait "$waiter"
is_cleaned || fail "somebody keeps the directory"

# A waiter keeps it, too.
flock -x "$locks/job" sh -c 'touch foreign; until test -e foreign.go; do sleep 0.02; done' &
foreign=$!
wait_until 30 test -e foreign
"$DLOCK" run -q -k job -- true &
waiter=$!
wait_until 30 has_waiter "$locks/job"
if is_cleaned; then fail "the directory of a waiter is cleaned"; fi
touch foreign.go
expect_status 0 wait "$foreign"
expect_status 0 wait "$waiter"

flock -x "$locks" "$DLOCK" run -k job -- true 2>err
assert_equal '' "$(<err)" "stderr of a run beside a cleaner"

# What is kept between two runs is not flocked, and a cleaner deletes it.
kept=$(mktemp -d /tmp/dlock-test.XXXXXX)
at_exit() { rm -rf "$kept"; }
"$DLOCK" once -b "file://$kept" -k job --remember 1d -- true 2>err
assert_contains "$(<err)" "$kept/~done is below /tmp: what is done is forgotten when a cleaner deletes what is old there"
"$DLOCK" id -b "file://$kept" --name order 2>err >out
assert_contains "$(<err)" "$kept/~ids is below /tmp: its counters begin again when a cleaner deletes what is old there"

if command -v systemd-tmpfiles >/dev/null && (($(id -u) == 0)); then
  chmod 0755 .
  mkdir -m 1777 cleaned
  mkdir -m 0700 cleaned/locks
  echo "d $tmp/cleaned 1777 root root 1s" >clean.conf
  locks=$tmp/cleaned/locks
  export DLOCK_BACKEND=file://$locks
  # shellcheck disable=SC2119  # no arguments
  hold
  sleep 2
  systemd-tmpfiles --clean "$tmp/clean.conf"
  [[ -e $locks/job ]] || fail "the lock file of a holder was deleted"
  release
fi
