#!/usr/bin/env bash
# ctest: longer in soak
# ctest: cost 15
# When the clock of the service is set back by an hour, no snowflake id is repeated: first the workers that were never
# used have ids, and then there are none, status 75, until the clock is right again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/clock.sh"
. "$(dirname "$0")/redis.sh"
need python3
cd "$tmp"
export DLOCK_QUIET=1

# check NAME COMMAND...: the clock of that name is that of the service that the command uses.
check() {
  local name=$1 i got
  shift
  for ((i = 0; i < 1000; ++i)); do "$@" id --snowflake >>ids-"$name"; done
  jump_clock "$name" -3600000  # 24 workers are left, which have ids of an hour ago
  for ((i = 0; i < 100; ++i)); do "$@" id --snowflake --count 5000 >>ids-"$name"; done
  jump_clock "$name" 3600000
  for ((i = 0; i < 100; ++i)); do "$@" id --snowflake --count 5000 >>ids-"$name"; done
  jump_clock "$name" -3600000  # all of them have been used an hour later
  got=0
  "$@" id --snowflake >out 2>err || got=$?
  assert_equal '75/1/' "$got/$(wc -l <err)/$(<out)" "status, lines on stderr, and stdout ($(<err))"
  assert_contains "$(<err)" 'ahead of its clock'
  jump_clock "$name" 3600000
  for ((i = 0; i < 100; ++i)); do "$@" id --snowflake --count 5000 >>ids-"$name"; done
  assert_equal '' "$(sort ids-"$name" | uniq -d | head)" "ids that were printed twice"
  assert_equal $((1000 + 300 * 5000)) "$(wc -l <ids-"$name")" "ids"
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
workers_are() { (($(rcli busy zcard '{dlock:}:workers') >= $1)); }
DLOCK_BACKEND=${redis_url[busy]} python3 "$TEST_SOURCE/tests/cli/id_storm.py" "$DLOCK" 20 500 $RANDOM --snowflake &
wait_until 60 workers_are 50
jump_clock busy -3600000
wait_until 60 workers_are 200
jump_clock busy 3600000
wait_until 60 workers_are 350
jump_clock busy -3600000
wait $! || fail "ids were repeated"
