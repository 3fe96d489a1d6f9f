#!/usr/bin/env bash
# The job is ended when the supervisor has no memory left at --max-hold.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"

cd "$tmp"
printf 0 >memory
LD_PRELOAD=$TEST_MEMORY_SHIM MEMORY_SHIM=$tmp/memory "$DLOCK" run -k job --max-hold 3 --kill-after 0.3 -- \
  env -u LD_PRELOAD ./tree 2>err &
launcher=$!
wait_until 30 tree_is_grown
pgrep -P "$launcher" | dd of=memory conv=notrunc status=none
status=0
wait "$launcher" || status=$?
assert_equal 79 "$status" "status ($(<err))"
assert_felled "--max-hold"
assert_contains "$(<err)" "dlock: lost \"job\": the supervisor (pid $(<memory)) was killed by signal 6; ended env" "stderr"
assert_free job
