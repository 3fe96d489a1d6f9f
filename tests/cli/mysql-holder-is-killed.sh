#!/usr/bin/env bash
# ctest: every mysql backend
# ctest: cost 20
# When the dlock of a holder is killed, the next one has the lock when the ttl is over; not before the job is dead,
# whoever of dlock's processes was killed first.  A waiter that is killed is in nobody's way.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trouble.sh"
. "$(dirname "$0")/backends.sh"
need pgrep python3

supervisor_of() { pgrep -o -P "$1"; }
# kill_both PID: this dlock and its supervisor, in a moment in which it can do nothing.
kill_both() {
  local supervisor
  supervisor=$(supervisor_of "$1")
  kill -STOP "$1"
  kill -KILL "$supervisor" "$1" 2>/dev/null  # the second may have noticed the end of the first
  wait "$1" 2>/dev/null || true
  wait_until 20 gone "$supervisor"
}
queue_is() { [[ $("$DLOCK" show -o waiting job) == *"$1" ]]; }

ttl=3000

# The holder, while two wait, of whom the first is killed, too.
run_job ${ttl}ms ./job.sh
"$DLOCK" run -k job -q --ttl 60s -- touch dead &
first=$!
wait_until 20 queue_is 1
"$DLOCK" run -k job -q --ttl 60s -- touch next &
second=$!
wait_until 20 queue_is 2
kill_both $first
wait_until 20 queue_is 1
begun=$(now_ms)
kill_both "$holder"
expect_status 0 wait $second
took=$(($(now_ms) - begun))
echo "$backend: the next one had it after $took ms"
((took < ttl + 3000)) || fail "the next one waited $took ms"
((took > ttl / 2)) || fail "a lease of $ttl ms was over after $took ms"
[[ -e next && ! -e dead ]] || fail "a waiter that was killed had its turn"
rm next

# The supervisor alone, with the launcher unable to end the tree for now: the grandchild lives on, and
# the lock is held as long as it does.
run_job 10s ./stubborn.sh
supervisor=$(supervisor_of "$holder")
# A tracer stops the launcher: it wakes up from SIGSTOP when its supervisor ends.
coproc TRACER { exec python3 -c '
import ctypes, os, sys
ptrace, pid = ctypes.CDLL(None, use_errno=True).ptrace, int(sys.argv[1])
for request in (0x4206, 0x4207):  # PTRACE_SEIZE, PTRACE_INTERRUPT
    if ptrace(request, pid, None, None) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(pid, 0x40000000)  # __WALL
print("stopped", flush=True)
sys.stdin.read()' "$holder"; }
read -r _ <&"${TRACER[0]}"
kill -KILL "$supervisor"
wait_until 20 gone "$supervisor"
! flock -n oracle true || fail "nothing of the job is left"
for ((i = 0; i < 20; ++i)); do
  got=0
  "$DLOCK" run -q -n -k job -- flock -n oracle true || got=$?
  assert_equal 75 "$got" "what the next one gets while the tree of the job lives"
  sleep 0.05
done
eval "exec ${TRACER[1]}>&-"
expect_status 0 "$DLOCK" run -q -k job -w 60 -- flock -n oracle true
wait "$holder" || true
