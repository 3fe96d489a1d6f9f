#!/usr/bin/env bash
# The whole tree of a job is ended where dlock has no descriptor left, no /proc, or the /proc of another pid namespace: by
# the supervisor when --max-hold is over, and by the front when the supervisor is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"
need unshare

cd "$tmp"
for descriptor in {3..60}; do eval "exec $descriptor>&-"; done  # of the program that runs the tests

# A new pid namespace ends with its first process: that one sees whether something is left before it ends.
cat >first <<SH
#!/bin/sh
"\$@"
status=\$?
pgrep -f -- "[d]${mark#d}" >left && exit 99
exit \$status
SH
chmod +x first

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

few_descriptors() { (ulimit -n "$limit" && exec "$@"); }
proc_of_others() { unshare -p --fork --kill-child ./first "$@"; }

key=poor-$$
for world in few_descriptors no_proc proc_of_others; do
  if [[ $world == *proc* ]] && ! unshare -mp --fork true 2>/dev/null; then
    echo "not tried, no namespaces to be had: $world"
    continue
  fi
  status=0
  $world timeout -k 1 30 "$DLOCK" run -q -k job --max-hold 2 --kill-after 0.3 -- ./tree || status=$?
  assert_equal 124 "$status" "$world: status when --max-hold is over"
  [[ -e grown ]] || fail "$world: the job had no time to start"
  assert_felled "$world, --max-hold"
  assert_free job

  $world "$DLOCK" run -q -k "$key" -- ./tree 2>err &
  running=$!
  wait_until 30 tree_is_grown
  front=$(ps -C dlock -o pid=,args= | sed -n "s/^ *\([0-9]*\) .* -k $key .*/\1/p")
  pkill -KILL -P "$front"
  status=0
  wait "$running" || status=$?
  assert_equal 79 "$status" "$world: status when the supervisor was killed ($(<err))"
  assert_felled "$world, supervisor killed"
  assert_free "$key"
done
