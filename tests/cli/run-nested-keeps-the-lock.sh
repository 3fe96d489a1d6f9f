#!/usr/bin/env bash
# ctest: cost 25
# ctest: every kind of backend
# A nested run that is still running when the job above it ends keeps the lock: the caller has its exit status, and
# nobody else holds the lock until the nested job has ended, by itself, by --max-hold, by a loss, or because the
# supervisor that lent the lock was killed or stopped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need flock
export DLOCK_BACKEND DLOCK

# The nested job.  It ignores SIGTERM, and keeps `alone` locked for as long as it lives.
cat >work <<'SH'
#!/bin/sh
trap '' TERM
exec 9>alone
flock -n 9 || touch overlap
echo $PPID >borrower
ps -o ppid= -p $PPID | tr -d " " >reentering_launcher
i=0
while [ -n "$crowd" ] && [ $i -lt 100 ]; do sleep 1000 & i=$((i + 1)); done
touch in
until test -e go; do sleep 0.02; done
touch out
SH
# The job above: starts the nested run in the background and ends with status 3 when that one works.
cat >outer <<'SH'
#!/bin/sh
echo $PPID >lender
if [ -n "$daemon" ]; then
  setsid sh -c 'echo $$ >daemon; exec sleep 1000' &
  until test -s daemon; do sleep 0.02; done
fi
"$DLOCK" run -k job $nested --kill-after 0.7 -- ./work 2>nested.err &
until test -e in; do sleep 0.02; done
exit 3
SH
chmod +x work outer

export nested='' crowd='' daemon=''

# lend ARGUMENTS...: leaves a nested run behind that works, and the pid of the supervisor that lends in $lender.
lend() {
  rm -f in out go
  try 3 -k job --ttl 4s "$@" -- ./outer
  lender=$(<lender)
}
# next_alone WHAT: the next holder starts when the nested job has ended, and not before.
next_alone() {
  expect_status 0 "$DLOCK" run -q -k job -w 60 -- sh -c 'exec 9>alone; flock -n 9'
  [[ ! -e overlap ]] || fail "OVERLAP: two nested jobs, $1"
}

# By itself.
lend
assert_contains "$(<err)" "./outer has ended; still running: dlock (pid " "stderr of the run above"
assert_contains "$(<err)" "; keeping \"job\" until the nested runs of dlock have ended" "stderr of the run above"
assert_held job
"$DLOCK" run -q -k job -w 60 -- test -e out &
next=$!
touch go
wait "$next" || fail "OVERLAP: the next holder ran before the nested job had ended"
assert_free job
assert_equal '' "$(<nested.err)" "stderr of the nested run"

# --max-hold of the run above.
lend --max-hold 3
next_alone "--max-hold"
[[ ! -e out ]] || fail "the nested job was not ended by --max-hold"

# A loss: force-release does not wait for the holder, but ends it.
lend
expect_status 0 "$DLOCK" force-release --yes job >/dev/null 2>&1
wait_until 10 flock -n alone true
wait_until 10 gone "$lender"
[[ ! -e out ]] || fail "the nested job was not ended after the loss"

# The supervisor of the nested run is killed: its launcher ends the job, of many processes, before the lock is free.
crowd=1
lend
kill -KILL "$(<borrower)"
next_alone "the supervisor of the nested run was killed"

# That of the run above, too: the launcher of the nested run ends the job.
lend
kill -KILL "$(<borrower)" "$lender"
next_alone "both supervisors were killed"
crowd=

# --min-hold of the nested run.
nested="--min-hold 4"
lend
touch go
wait_until 30 test -e out
wait_until 30 gone "$(<reentering_launcher)"
assert_held job
wait_until 30 gone "$lender"
nested=
assert_free job

# A process that the job above leaves running is its user's affair, whatever becomes of a nested run.
daemon=1
lend --max-hold 2
daemon=
next_alone "--max-hold, with a daemon"
if gone "$(<daemon)"; then fail "a daemon of the job was ended with the nested run"; fi
kill -KILL "$(<daemon)"

# The supervisor that lends is killed, or told to end.
lend
kill -KILL "$lender"
next_alone "the lender was killed"
lend
kill -TERM "$lender"
next_alone "the lender got SIGTERM"

# It is stopped.  A lock that the kernel keeps stays held; a lease runs out, and the nested job has ended before.
lend
kill -STOP "$lender"
if ends_at_once; then
  assert_held job
  touch go
  wait_until 30 test -e out
else
  next_alone "the lender was stopped"
fi
kill -CONT "$lender"
wait_until 30 gone "$lender"
