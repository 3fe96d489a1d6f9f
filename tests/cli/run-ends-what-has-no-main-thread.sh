#!/usr/bin/env bash
# ctest: every kind of backend
# A process whose main thread has ended while others run on is a zombie by its state and alive in fact: it is ended
# with the rest of the job, by SIGKILL if it ignores SIGTERM, and nobody else holds the lock before.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

cd "$tmp"
cat >job.py <<'PYTHON'
import ctypes, os, signal, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def work():
    while open("/proc/self/stat").read().rsplit(") ", 1)[1][0] != "Z":
        time.sleep(0.01)
    open("job", "w").write(str(os.getpid()))
    time.sleep(1000)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
PYTHON

is_alive() { [[ -d /proc/$1/task && -n $(find "/proc/$1/task" -mindepth 1 -maxdepth 1 ! -name "$1" 2>/dev/null) ]]; }

for kind in max-hold SIGTERM; do
  rm -f job
  if [[ $kind == max-hold ]]; then
    try 124 -q -k job --max-hold 2 --kill-after 0.3 -- python3 job.py
    [[ -s job ]] || fail "the job had no time to start"
  else
    "$DLOCK" run -q -k job --kill-after 0.3 -- python3 job.py &
    launcher=$!
    wait_until 20 test -s job
    kill -TERM "$launcher"
    # SIGTERM alone does not end it, and dlock gives a job the time that it takes.  So end dlock, too.
    kill -KILL "$launcher"
    wait "$launcher" 2>/dev/null || true
    wait_until 20 is_free job
  fi
  if is_alive "$(<job)"; then fail "OUTLIVED ($kind): the job has a thread that runs"; fi
  assert_free job
done
