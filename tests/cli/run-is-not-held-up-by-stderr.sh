#!/usr/bin/env bash
# ctest: every kind of backend
# Nobody reads what dlock and its job say on stderr (a pipe that is full, a terminal that is stopped with Ctrl-S): dlock
# ends with its job and releases the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

mkfifo pipe
exec 7<>pipe
full() { dd if=/dev/zero of=pipe bs=4096 count=1000 oflag=nonblock conv=notrunc status=none 2>/dev/null || true; }

full
expect_status 3 timeout -k 1 60 "$DLOCK" run -vv -k job -- sh -c 'exit 3' 2>pipe
assert_free job

# --min-hold keeps the lock for as long as it says.
begun=$(now_ms)
expect_status 3 timeout -k 1 60 "$DLOCK" run -vv -k job --min-hold 3 -- sh -c 'exit 3' 2>pipe
assert_held job
expect_status 0 "$DLOCK" run -q -k job -w 60 -- true
took=$(($(now_ms) - begun))
((took >= 3000)) || fail "free after $took ms, with --min-hold 3"

# The lock is lost while the job runs.
"$DLOCK" run -vv -k job -- sleep 1000 2>pipe &
launcher=$!
wait_until 30 is_held job
expect_status 0 "$DLOCK" force-release --yes job >/dev/null 2>&1
wait_until 30 gone "$launcher"
status=0
wait "$launcher" || status=$?
assert_equal 79 "$status" "status after a loss that cannot be told"
exec 7>&-

# A terminal.
python3 - "$DLOCK" <<'PYTHON'
import os, pty, subprocess, sys, termios, time
leader, terminal = pty.openpty()
termios.tcflow(terminal, termios.TCOOFF)  # what Ctrl-S does
command = [sys.argv[1], "run", "-vv", "-k", "job", "--", "sh", "-c", "exit 3"]
status = subprocess.run(command, stderr=terminal, timeout=60).returncode
assert status == 3, status
PYTHON
