#!/usr/bin/env bash
# The job is ended when there is no memory left: at --max-hold, and when the supervisor is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"

cd "$tmp"

# start ARGUMENTS...: a job in the background whose dlock has no memory from `no_memory` on; the job itself has.
start() {
  printf 0 >memory
  LD_PRELOAD=$TEST_MEMORY_SHIM MEMORY_SHIM=$tmp/memory "$DLOCK" run -k job "$@" -- \
    env -u LD_PRELOAD ./tree 2>err &
  front=$!
  wait_until 30 tree_is_grown
}
no_memory() { printf 1 | dd of=memory conv=notrunc status=none; }
# ends WHAT: dlock has ended, with a status that says that it failed, and nothing of the job is left.
ends() {
  status=0
  wait "$front" || status=$?
  assert_equal 70 "$status" "$1: status"
  assert_felled "$1"
  assert_contains "$(<err)" "dlock: out of memory" "$1: stderr"
  assert_free job
}

start
no_memory
pkill -KILL -P "$front"
ends "the supervisor was killed"

start --max-hold 3 --kill-after 0.3
no_memory
ends "--max-hold"
