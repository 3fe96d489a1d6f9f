#!/usr/bin/env bash
# Runs that want to share a lock which is shared are granted it at once, while others try in vain to have it alone.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

holder a -k job --shared
expect_status 75 "$DLOCK" run -q -w 0.1 -k job -- true  # after the first waiter there is a gate
alone() { until [[ -e over ]]; do "$DLOCK" run -q -n -k job -- true || :; done; }
alone &
loops=$!
alone &
for ((i = 0; i < 200; ++i)); do
  "$DLOCK" run -q -n -k job --shared -- true || fail "run $i: status $?"
done
touch over
wait "$loops" $!
finish a
