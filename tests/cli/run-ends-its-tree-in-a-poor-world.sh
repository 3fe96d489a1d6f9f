#!/usr/bin/env bash
# The whole tree of a job is ended where dlock has no descriptor left: by the supervisor when --max-hold is over, and by
# the launcher when the supervisor is killed.  Without a /proc of its own pid namespace dlock starts nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"

cd "$tmp"
for descriptor in {3..60}; do eval "exec $descriptor>&-"; done  # of the program that runs the tests

# As few as dlock can start a command with.  With fewer it refuses and leaves nothing running.
for ((limit = 6;; ++limit)); do
  status=0
  (ulimit -n "$limit" && exec timeout -k 1 30 "$DLOCK" run -k job -- touch started) 2>err || status=$?
  ((status != 0)) || break
  [[ ! -e started ]] || fail "with $limit descriptors the command has run, status $status"
  [[ $status == 69 || $status == 70 ]] || fail "with $limit descriptors: status $status ($(<err))"
done
assert_free job
((limit <= 18)) || fail "dlock needs $limit descriptors"
limit=$((limit < 12 ? 12 : limit))  # as a shell needs them


status=0
(ulimit -n "$limit" && exec timeout -k 1 30 "$DLOCK" run -q -k job --max-hold 2 --kill-after 0.3 -- ./tree) || status=$?
assert_equal 124 "$status" "status when --max-hold is over"
[[ -e grown ]] || fail "the job had no time to start"
assert_felled "--max-hold"
assert_free job

key=poor-$$
(ulimit -n "$limit" && exec "$DLOCK" run -q -k "$key" -- ./tree) 2>err &
launcher=$!
wait_until 30 tree_is_grown
pkill -KILL -P "$launcher"
status=0
wait "$launcher" || status=$?
assert_equal 79 "$status" "status when the supervisor was killed ($(<err))"
assert_felled "supervisor killed"
assert_free "$key"

no_proc() { unshare -m sh -c 'umount -l /proc && exec "$@"' sh "$@"; }
proc_of_others() { unshare -p --fork --kill-child "$@"; }
rm -f started
for world in no_proc proc_of_others; do
  unshare -mp --fork true 2>/dev/null || break
  expect_status 70 "$world" "$DLOCK" run -k job -- touch started 2>err
  assert_equal 'dlock: /proc is not mounted, or is that of another pid namespace: dlock could not end what it starts' \
    "$(<err)" "stderr in $world"
  [[ ! -e started ]] || fail "$world: the command was started"
done
