#!/usr/bin/env bash
# ctest: every backend
# ctest: longer in soak
# ctest: cost 15
# Whatever is killed or stopped, dlock id prints no number twice.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

if [[ ${trait[ids]} != true ]]; then
  expect_status 64 "$DLOCK" id --name order >out 2>err
  assert_equal "/1" "$(<out)/$(wc -l <err)" "stdout, and lines on stderr ($(<err))"
  assert_contains "$(<err)" "the backend $backend has no counters"
  expect_status 64 "$DLOCK" id --snowflake 2>err
  exit 0
fi

numbers=500
[[ -z ${DLOCK_TEST_SOAK-} ]] || numbers=10000
storm() { python3 "$DLOCK_SOURCE/tests/cli/id_storm.py" "$DLOCK" 20 "$numbers" $RANDOM -q --connect-timeout 20 "$@"; }

storm --name order
storm --snowflake
if [[ -n ${DLOCK_TEST_SOAK-} && ${#servers_of_backend[@]} != 0 && $backend != redis ]]; then
  "$DLOCK" id -q --name after >before
  restart_servers
  "$DLOCK" id -q --name after >after
  (($(<after) > $(<before))) || fail "after a restart of the server: $(<after), before: $(<before)"
fi
