#!/usr/bin/env bash
# A job that ends while a process of its group is stopped: the kernel must not take the group for one
# that has just been orphaned, which it would end by SIGHUP, the calling script included.
. "$(dirname "$0")/lib.sh"
need python3 setsid

# As cron or a CI runner starts it: the first process of a session, whose group is orphaned anyway.
cat >"$tmp/script.py" <<'PYTHON'
import os, signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
stopped = subprocess.Popen(["sleep", "1000"])
os.kill(stopped.pid, signal.SIGSTOP)
os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
status = subprocess.call([sys.argv[1], "run", "--key", "k", "--", "sh", "-c", "exit 5"])
alive = stopped.poll() is None
stopped.kill()
sys.exit(f"status {status}" if status != 5 else None if alive else "the stopped process was ended")
PYTHON
expect_status 0 setsid -w python3 "$tmp/script.py" "$DLOCK"
