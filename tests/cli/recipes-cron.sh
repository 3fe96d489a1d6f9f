#!/usr/bin/env bash
# The crontab lines of README.md and of the manual, in the environment of cron: a run is skipped without a word while
# the last one is at work; of three machines one runs the job; one that fails is done by the next machine.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/recipe.sh"

prod_is_redis
config=$HOME/.config/dlock/config.json
sed -i "s,^{,{\"backend\": \"$DLOCK_BACKEND\"\, ," "$config"  # without -b, the locks of this test

# A line of crontab, as cron on Debian runs it.
as_cron() { env -i HOME="$HOME" LOGNAME=me SHELL=/bin/sh PATH="$tmp/bin:/usr/bin:/bin" /bin/sh -c "${1#*\*  }"; }

# The lines of README are those of the manual.
for name in cron-one-machine cron-several-machines cron-once; do
  grep -qF -- "$(recipe $name)" "$TEST_SOURCE/README.md" || fail "README.md has another line than $name"
done

# One machine.
executable sync-all <<'SH'
#!/bin/sh
touch held
until test -e go; do sleep 0.02; done
echo report
SH
as_cron "$(recipe cron-one-machine)" >first 2>&1 &
wait_until 30 test -e held
got=0
as_cron "$(recipe cron-one-machine)" >out 2>&1 || got=$?
assert_equal 0 "$got" "status of a run that is skipped"
assert_equal '' "$(<out)" "what cron would mail of a run that is skipped"
touch go
wait $! || fail "the run that held the lock ended with status $?"
assert_equal report "$(<first)" "what cron mails of a run"

# Three machines, whose clocks differ: each starts when the job of the one before has ended.
executable sync-all <<'SH'
#!/bin/sh
echo run >>runs
SH
: >runs
for machine in 1 2 3; do
  as_cron "$(recipe cron-several-machines)" >out 2>&1 || fail "machine $machine: status $?"
  assert_equal '' "$(<out)" "what cron mails of machine $machine"
done
assert_equal run "$(<runs)" "runs on three machines"

# Once a day: the first machine fails, the second does it, the third has nothing to do.
executable import.sh <<'SH'
#!/bin/sh
echo run >>imports
[ "$(wc -l <imports)" -ge 2 ]
SH
: >imports
failed=0
pids=()
for machine in 1 2 3; do
  as_cron "$(recipe cron-once)" >"out.$machine" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=$((failed + 1)); done
assert_equal 2 "$(wc -l <imports)" "tries"
assert_equal 1 "$failed" "machines on which it failed: $(cat out.*)"

# A machine without the profile does not run alone.
mv "$config" "$config.away"
got=0
as_cron "$(recipe cron-several-machines)" >out 2>&1 || got=$?
assert_equal 64 "$got" "status without the profile"
assert_equal run "$(<runs)" "runs without the profile"
