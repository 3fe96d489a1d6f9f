#!/usr/bin/env bash
# A lock that was broken is free when the command of its holder has ended, and not before: also if that ignores SIGTERM,
# or if the dlock that should end it is stopped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need flock pgrep

# A command that ignores SIGTERM and keeps `alone` locked while it lives; and what comes after it.
cat >stubborn <<'SH'
#!/bin/bash
trap 'touch told' TERM
exec 9>alone
flock -n 9 || touch overlap
exec 8<> <(:)
echo $$ >"$1.pid"
echo "$DLOCK_TOKEN" >"$1.token"
touch "$1.held"
while :; do read -rt 0.02 -u 8 || :; done
SH
cat >after <<'SH'
#!/bin/bash
exec 9>alone
flock -n 9 || touch overlap
exec ./job "$1"
SH
chmod +x stubborn after
assert_no_overlap() { [[ ! -e overlap ]] || fail "OVERLAP: the lock was free before the command had ended, $1"; }

for mode in '' --shared --slots=1; do
  kind=${mode:-exclusive}
  rm -f told
  job=./stubborn
  holder a -k job --kill-after 2 ${mode:+"$mode"}
  job=./after
  # The others want it for themselves, or the same slot.
  slot=${mode/--shared/}
  waiter quiet job -q ${slot:+"$slot"}
  waiter talks job ${slot:+"$slot"}
  touch quiet.go talks.go
  "$DLOCK" force-release --yes job 2>said &
  breaker=$!
  wait_until 10 test -e told
  # Until it is dead, nobody gets the lock.
  tried=0
  until gone "$(<a.pid)"; do
    got=0
    "$DLOCK" run -q -n -k job ${slot:+"$slot"} -- sh -c 'exec 9>alone; flock -n 9 || touch overlap' || got=$?
    [[ $got == 0 || $got == 75 ]] || fail "dlock run -n ends with $got"
    tried=$((tried + 1))
    assert_no_overlap "$kind"
  done
  expect_status 0 wait $breaker
  assert_contains "$(<said)" " on $(uname -n), pid ${pid[a]} (stubborn))" "force-release, $kind"
  ends 79 a
  ends 0 quiet talks
  assert_no_overlap "$kind"
  ((tried > 0)) || fail "the command did not live long enough to try"
  expect_status 1 "$DLOCK" show job >out
done

# The supervisor is stopped.
job=./job
for mode in '' --shared --slots=1; do
  kind=${mode:-exclusive}
  holder a -k job ${mode:+"$mode"}
  slot=${mode/--shared/}
  waiter b job -q ${slot:+"$slot"}
  supervisor=$(pgrep -o -P "${pid[a]}")
  kill -STOP "$supervisor"
  got=0
  "$DLOCK" force-release --yes --connect-timeout 1 job >out 2>said || got=$?
  assert_equal '69/' "$got/$(<out)" "status and stdout of force-release of one that is stopped, $kind ($(<said))"
  grep -qE "pid (${pid[a]}|$supervisor)\>" said || fail "force-release names no pid of the holder, $kind: $(<said)"
  assert_contains "$(<said)" 'does not answer' "force-release of one that is stopped, $kind"
  expect_status 75 "$DLOCK" run -q -n -k job ${slot:+"$slot"} -- true
  [[ ! -e b.held ]] || fail "OVERLAP: a waiter got the lock of one that is stopped, $kind"
  ! gone "$(<a.pid)" || fail "the command has ended, $kind"
  assert_contains "$("$DLOCK" show job)" ", pid ${pid[a]}," "who holds the lock, $kind"
  assert_contains "$("$DLOCK" list)" " ${pid[a]} " "who holds the lock, $kind"
  # Once it goes on, it hears of it.
  kill -CONT "$supervisor"
  ends 79 a
  gone "$(<a.pid)" || fail "the command of the broken holder goes on, $kind"
  runs b
  finish b
done
