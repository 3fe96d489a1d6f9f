#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: longer in soak
# ctest: cost 15
# Whatever is killed or stopped, dlock id prints no number twice.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

if [[ ${trait[ids]} != true ]]; then
  expect_status 64 "$DLOCK" id --name order >out 2>err
  assert_equal "/1" "$(<out)/$(wc -l <err)" "stdout, and lines on stderr ($(<err))"
  assert_contains "$(<err)" "the backend $backend has no counters; use one of: file, "
  expect_status 64 "$DLOCK" id --snowflake 2>err
  exit 0
fi

each=100
[[ -z ${TEST_SOAK-} ]] || each=10000
storm() { python3 "$TEST_SOURCE/tests/cli/id_storm.py" "$DLOCK" 20 "$each" $RANDOM -q --connect-timeout 20 "$@"; }

storm --name order
storm --snowflake
