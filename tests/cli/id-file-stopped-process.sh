#!/usr/bin/env bash
# A process that is stopped in the middle of taking a number holds up the others, who say so; and when it goes on, no
# number is given twice.
. "$(dirname "$0")/lib.sh"
need strace
cd "$tmp"
id() { "$DLOCK" id -q --name order --connect-timeout "$1"; }
assert_equal 1 "$(id 5)"
# The second pwrite is that of the number; the first says that it is under way.
strace -f -o trace -e trace=pwrite64 -e inject=pwrite64:signal=SIGSTOP:when=1 "$DLOCK" id -q --name order >stopped &
tracer=$!
is_stopped() {
  pid=$(pgrep -P "$tracer" | head -n 1) && grep -q '^State:[[:space:]]*[Tt]' "/proc/$pid/status"
}
wait_until 20 is_stopped
expect_status 69 id 1 >out 2>err
assert_contains "$(<err)" 'is it stopped?'
id 60 >later &
waiter=$!
kill -CONT "$pid"
wait "$tracer"
wait "$waiter"
assert_equal '2 3' "$(cat stopped later | sort -n | xargs)" "numbers"
