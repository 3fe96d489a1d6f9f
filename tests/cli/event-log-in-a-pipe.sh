#!/usr/bin/env bash
# An event log can be a pipe, or a descriptor: a reader that is too slow or ends delays nothing, and the job finds its
# descriptors as they were.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
need pgrep
cd "$tmp"
unset DLOCK_EVENT_LOG

# A process substitution, a redirection, stdout and a FIFO.
"$DLOCK" run -q -k job --event-log >(cat >log) -- true
has_all() { (($(wc -l <log) == 2)); }
wait_until 30 has_all
check_log log
"$DLOCK" run -q -k job --event-log /dev/fd/3 -- true 3>log
check_log log
"$DLOCK" run -q -k job --event-log /dev/fd/3 -- true 3>>log
check_log log
assert_equal 4 "$(wc -l <log)" "lines"
for name in /dev/fd/1 /dev/stdout; do
  "$DLOCK" run -q -k job --event-log $name -- echo said >out
  assert_equal said "$(sed -n 2p out)" "stdout with $name"
  sed 2d out >log
  check_log log
  "$DLOCK" run -q -k job --event-log $name -- echo said | sed 2d >log
  check_log log
done
mkfifo fifo
exec {reader}<>fifo
"$DLOCK" run -q -k job --event-log fifo -- true
head -n 2 <&"$reader" >log
check_log log
exec {reader}>&-

# When dlock has returned, a process that stays behind for --min-hold does not keep the pipe open.
timeout 30 "$DLOCK" run -q -k min --min-hold 10m --event-log /dev/fd/1 -- true | cat >log
check_log log
kill "$(pgrep -f "^lock supervisor for pid $(jq .pid log | tail -n 1)\$")" || fail "no process has stayed behind"

# The reader is slow: the pipe is full when the command ends.
exec {full}<>fifo
flags=$(grep flags "/proc/$$/fdinfo/$full")
python3 -c 'import os; os.set_blocking(1, False); [os.write(1, b"\n") for _ in iter(lambda: 0, 65536)]' >fifo 2>/dev/null || true
expect_status 5 timeout 30 "$DLOCK" run -k job --event-log fifo -- sh -c 'exit 5' 2>err
assert_equal 'dlock: event log fifo: the reader of the pipe is too slow; events of this run are missing there' "$(<err)"
expect_status 5 timeout 30 "$DLOCK" run -k job --event-log "/dev/fd/$full" -- sh -c 'exit 5' 2>err
assert_contains "$(<err)" 'the reader of the pipe is too slow'
assert_equal "$flags" "$(grep flags "/proc/$$/fdinfo/$full")" "flags of the descriptor"
exec {full}>&-

# The reader ends while the job runs.
exec {reader}<>fifo
"$DLOCK" run -k job --event-log fifo -- sh -c 'until test -e go; do sleep 0.02; done; exit 5' 2>err &
head -n 1 <&"$reader" >log
exec {reader}>&-
touch go
expect_status 5 wait $!
assert_equal acquired "$(jq -r .event log)"
assert_equal 'dlock: event log fifo: Broken pipe; events of this run are missing there' "$(<err)"
