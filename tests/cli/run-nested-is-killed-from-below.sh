#!/usr/bin/env bash
# A run whose job contains a run with another key ends that one, too: the inner lock is free only when the inner job is
# dead, although both of the inner run's own processes are killed.
. "$(dirname "$0")/lib.sh"
need python3
cd "$tmp"

# It takes a while to die: the kernel frees its memory before it closes its files.
cat >job.py <<'E2'
import fcntl, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
oracle = open("oracle", "w")
fcntl.flock(oracle, fcntl.LOCK_EX | fcntl.LOCK_NB)
memory = bytearray(b"x") * (300 << 20)
open("runs", "w").close()
time.sleep(600)
E2

"$DLOCK" run -q -k outer --kill-after 0.3 -- "$DLOCK" run -q -k inner -- python3 job.py &
outer=$!
wait_until 60 test -e runs
"$DLOCK" run -q -k inner -- flock -n oracle echo alone >next &
next=$!
wait_until 30 has_waiter "$locks/inner"
expect_status 0 "$DLOCK" force-release --yes outer 2>broke
expect_status 79 wait "$outer"
expect_status 0 wait "$next"
assert_equal alone "$(<next)" "what the next holder of the inner lock found"
