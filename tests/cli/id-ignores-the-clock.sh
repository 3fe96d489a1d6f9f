#!/usr/bin/env bash
# ctest: longer in soak
# ctest: cost 15
# When the clock of the service is set back by an hour and forward again, no snowflake id is repeated.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/clock.sh"
. "$(dirname "$0")/redis.sh"
need python3
cd "$tmp"
export DLOCK_QUIET=1

# check NAME COMMAND...: the clock of that name is that of the service that the command uses.
check() {
  local name=$1 i jump
  shift
  for jump in -3600000 3600000 -1000 0; do
    for ((i = 0; i < 100; ++i)); do "$@" id --snowflake --count 5000 >>ids-"$name"; done
    jump_clock "$name" $jump
  done
  assert_equal '' "$(sort ids-"$name" | uniq -d | head)" "ids that were printed twice"
  assert_equal $((400 * 5000)) "$(wc -l <ids-"$name")" "ids"
}

new_clock server
start_redis server
DLOCK_BACKEND=${redis_url[server]} check server "$DLOCK"
[[ -n ${TEST_SOAK-} ]] || exit 0
new_clock file
check file env "CLOCK_SHIM=${clock_file[file]}" "LD_PRELOAD=$TEST_CLOCK_SHIM" "$DLOCK"

# The same in the middle of many that are killed and stopped.
new_clock busy
start_redis busy
calls_are() { (($(rcli busy info commandstats | sed -n 's/cmdstat_eval:calls=\([0-9]*\).*/\1/p') >= $1)); }
DLOCK_BACKEND=${redis_url[busy]} python3 "$TEST_SOURCE/tests/cli/id_storm.py" "$DLOCK" 20 500 $RANDOM --snowflake &
wait_until 60 calls_are 50
jump_clock busy -3600000
wait_until 60 calls_are 200
jump_clock busy 3600000
wait_until 60 calls_are 350
jump_clock busy -3600000
wait $! || fail "ids were repeated"
