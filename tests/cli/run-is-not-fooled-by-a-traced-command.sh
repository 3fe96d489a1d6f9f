#!/usr/bin/env bash
# A command that asks to be traced by its parent, as programs do that protect themselves from debuggers, is stopped by
# each signal until its tracer lets it go on.  That is not its end: it goes on, and the lock is kept.
. "$(dirname "$0")/lib.sh"
need python3
cd "$tmp"

cat >traced.py <<'PYTHON'
import ctypes, os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: open("heard", "w").close())
if ctypes.CDLL(None, use_errno=True).ptrace(0, 0, 0, 0) != 0:
    sys.exit(125)
os.kill(os.getpid(), signal.SIGUSR1)
while not os.path.exists("go"):
    time.sleep(0.02)
sys.exit(7)
PYTHON
"$DLOCK" run -k job -- python3 traced.py 2>err &
dlock=$!
wait_until 20 test -e heard
assert_held job
touch go
got=0
wait "$dlock" || got=$?
((got != 125)) || skip "no ptrace(2) here"
assert_equal 7 "$got" "status of a command that asked to be traced"
assert_equal '' "$(<err)" "stderr"
assert_free job
