#!/usr/bin/env bash
# dlock acquire --while takes the pid of a process above it, and no other; what is set for runs, and variables for what
# belongs to one grant, change nothing.  Bad command lines are in refused-command-lines.txt.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
# refuses STATUS TEXT ARGUMENTS...
refuses() {
  local want=$1 text=$2 got=0
  shift 2
  timeout -s KILL 60 "$DLOCK" "$@" >out 2>err </dev/null || got=$?
  assert_equal "$want" "$got" "exit status of dlock $* ($(<err))"
  assert_equal "1/" "$(wc -l <err)/$(<out)" "lines on stderr, and stdout, of dlock $* ($(<err))"
  assert_contains "$(<err)" "$text" "stderr of dlock $*"
}

# What is set for runs does no harm.
DLOCK_KILL_AFTER=9h DLOCK_ON_LOST=kill DLOCK_MAX_HOLD=1 DLOCK_CONFLICT_EXIT_CODE=9 "$DLOCK" acquire -k other --ttl 1m >out

# The process of --while.
sleep 600 &
other=$!
refuses 64 "--while $other: dlock was not started below this process" acquire -k job --while $other
kill -KILL $other
wait $other 2>/dev/null || true
refuses 64 "--while $other: there is no such process" acquire -k job --while $other
refuses 64 '--while 1: ' acquire -k job --while 1

# What is printed.
expect_status 64 "$DLOCK" acquire -k job --ttl 1m --export=sh --json >out 2>err
assert_contains "$(<err)" '--export: cannot be combined with --json'

# No variable says what belongs to one grant.
DLOCK_EXPORT=fish "$DLOCK" acquire -k third --ttl 1m >out
assert_lacks "$(<out)" 'set -gx' "what DLOCK_EXPORT does"

assert_free job
