#!/usr/bin/env bash
# acquire --while PID: the first of the two processes that keep the lock is killed before the second one has done
# anything: the second one ends the script all the same, and writes the last event.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
need strace pgrep
cd "$tmp"

cat >script <<'SH'
#!/bin/bash
# The second one asks for its parent first.  -D: the tracer is not below this script, and is not ended with it.
strace -D -f -qq -o trace -e trace=getppid,exit_group -e inject=getppid:delay_enter=2000000 \
  "$DLOCK" acquire -q -k job --while $$ --kill-after 0.5 >token &
exec sleep 1000
SH
chmod +x script
./script 2>err &
script=$!
wait_until 30 pgrep -f "^lock keeper for pid $script\$" >keeper
wait_until 30 grep -qs 'exit_group(0)' trace  # of dlock acquire
! grep -q 'getppid resumed' trace || fail "the second one was faster"
kill -KILL "$(head -n 1 keeper)"
wait_until 30 gone "$script"
wait "$script" || true
DLOCK_EVENT_LOG='' wait_until 30 is_free job
check_log log
assert_equal "lost killed" "$(events '.event, .reason' | tail -n 1)"
