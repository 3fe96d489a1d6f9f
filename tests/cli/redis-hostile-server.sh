#!/usr/bin/env bash
# ctest: longer in soak
# ctest: cost 25
# A server that answers with damaged replies, with what belongs to other commands, with messages that
# nobody asked for: every command ends in time, with a status of dlock(1).  The seed is printed; see
# hostile_redis.py for how to have one run again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need python3

runs=120
[[ -z ${TEST_SOAK-} ]] || runs=2000
start_redis a
python3 "$(dirname "$0")/hostile_redis.py" "$DLOCK" "${redis_port[a]}" "$runs" "${HOSTILE_SEED:-$RANDOM}"
