#!/usr/bin/env bash
# No descriptors, no processes, no reader on stderr, a stopped terminal, a hostile job: one clear line,
# the right status, and the lock is free afterwards.
. "$(dirname "$0")/lib.sh"
need python3 setpriv unshare


# Too few descriptors, at every stage: either it works or it says why.
for limit in 4 5 6 7 8 9 10 12 16; do
  status=0
  err=$(ulimit -n "$limit"; "$DLOCK" run --key k -- true 2>&1) || status=$?
  case $status in
    0) ;;
    69 | 70) assert_contains "$err" "oo many open files" "ulimit -n $limit" ;;
    127) assert_contains "$err" "shared libraries" "ulimit -n $limit" ;; # it did not even start
    *) fail "ulimit -n $limit: status $status: $err" ;;
  esac
  wait_until 10 is_free k
done

# No process to be had (root has no such limit).
if ((EUID == 0)); then
  mkdir -m 0700 "$tmp/nobody"
  chown 65534 "$tmp/nobody"
  chmod 711 "$tmp"
  cp "$DLOCK" "$tmp/dlock"
  for limit in 1 2; do
    status=0
    err=$(HOME=/ setpriv --reuid 65534 --clear-groups bash -c \
      "ulimit -u $limit; exec '$tmp/dlock' run --backend 'file://$tmp/nobody' --key k -- true" 2>&1) || status=$?
    [[ $status == 0 || $err == *"Resource temporarily unavailable"* ]] ||
      fail "ulimit -u $limit: status $status: $err"
  done
fi

# stderr full, closed, or read by nobody: the job goes on, with its status.
expect_status 3 bash -c '"$DLOCK" run -vv --key k -- sh -c "exit 3" 2>/dev/full'
expect_status 3 bash -c '"$DLOCK" run -vv --key k -- sh -c "exit 3" 2>&-'
status=$(bash -c '{ "$DLOCK" run -vv --key k -- sh -c "sleep 0.2; exit 3"; echo $? >&3; } 2>&1 3>"$0" | true; cat "$0"' "$tmp/status")
assert_equal 3 "$status" "the status with a closed pipe on stderr"
python3 - "$DLOCK" <<'PYTHON'
import fcntl, os, subprocess, sys
# A pipe that is full and is read only in the end: what dlock says is late, the job is not.
dlock = sys.argv[1]
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True:
        os.write(w, b"x" * 4096)
except BlockingIOError:
    pass
fcntl.fcntl(w, fcntl.F_SETFL, 0)
ran, out = os.pipe()
process = subprocess.Popen([dlock, "run", "-v", "--key", "k", "--max-hold", "0.3", "--", "sh", "-c",
                            f"sleep 1000"], stderr=w, pass_fds=[out])
os.close(out)
os.read(ran, 1)  # ends when the job is dead, whatever stderr does
os.close(w)
with os.fdopen(r, "rb") as reader:
    said = reader.read()
if process.wait(10) != 124 or b"--max-hold" not in said:
    sys.exit(f"status {process.returncode}, said {said[-200:]!r}")
PYTHON
wait_until 10 is_free k

# A job that kills its supervisor, or its whole process group.
status=0
"$DLOCK" run -q --key k -- sh -c 'kill -KILL $PPID; sleep 1000' 2>/dev/null || status=$?
assert_equal 79 "$status" "the status when the job killed the supervisor"
wait_until 10 is_free k
status=0
{ setsid -w "$DLOCK" run -q --key k -- sh -c 'kill -KILL 0; sleep 1000'; } 2>/dev/null || status=$?
assert_equal 137 "$status" "the status when the job killed its process group"
wait_until 10 is_free k

# As the first process of a container: orphans are reaped, and the status comes through.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
  expect_status 7 unshare --pid --fork --mount-proc "$DLOCK" run --key k -- \
    sh -c '(sleep 0.05 &) ; sleep 0.2; ps -eo stat= | grep -q Z && exit 8; exit 7'
  expect_status 143 unshare --pid --fork --mount-proc sh -c '
    (sleep 0.5; kill -TERM 1) & exec "$DLOCK" run -q --key k -- sleep 1000'
  wait_until 10 is_free k
fi

# A child with more rights than its parent is cleared of PR_SET_PDEATHSIG, and dies all the same.
if ((EUID == 0)); then
  cp "$(command -v sleep)" "$tmp/suid-sleep"
  chmod 4755 "$tmp/suid-sleep"
  "$DLOCK" run -q --key k -- "$tmp/suid-sleep" 1000 &
  launcher=$!
  wait_until 10 bash -c "pgrep -f '^$tmp/suid-sleep 1000' >/dev/null"
  kill -KILL "$launcher"
  wait "$launcher" 2>/dev/null || true
  wait_until 10 bash -c "! pgrep -f '^$tmp/suid-sleep 1000' >/dev/null"
  wait_until 10 is_free k
fi

# A job that forks as fast as it can, into new sessions, while it is ended.
status=0
"$DLOCK" run -q --key k --max-hold 0.3 --kill-after 0.1 -- python3 -c '
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(300):  # enough to be at it when the end comes, and no danger if it does not
    if os.fork() == 0:
        os.setsid()
        os.fork()
        signal.pause()
signal.pause()
' DLOCK-FORKING-JOB || status=$?
assert_equal 124 "$status" "the status of a forking job"
pgrep -f DLOCK-FORKING-JOB >/dev/null && fail "a process of a forking job is left"
wait_until 10 is_free k

# Frozen by a cgroup, both processes and the job, for longer than the lease: ended at the thaw.
freezer=/sys/fs/cgroup/freezer
if ((EUID == 0)) && mkdir "$freezer/dlock-test-$$" 2>/dev/null; then
  group=$freezer/dlock-test-$$
  thaw() {
    echo THAWED >"$group/freezer.state"
    rmdir "$group"
  }
  bash -c "echo \$\$ >$group/tasks; exec '$TEST_DLOCK' run --backend memory://$tmp/store --ttl 1s --key f -- \
    sh -c 'echo \$\$ >$tmp/job; exec sleep 1000'" 2>"$tmp/err" &
  launcher=$!
  wait_until 10 test -s "$tmp/job"
  job=$(<"$tmp/job")
  echo FROZEN >"$group/freezer.state"
  sleep 2
  echo THAWED >"$group/freezer.state"
  thawed=${EPOCHREALTIME/./}
  wait_until 10 gone "$job"
  echo "job dead $(((${EPOCHREALTIME/./} - thawed) / 1000)) ms after the thaw"
  status=0
  wait "$launcher" || status=$?
  assert_equal 79 "$status" "the status after a thaw"
  wait_until 10 bash -c "! [ -s $group/tasks ]"
  thaw
fi
