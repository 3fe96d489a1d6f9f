#!/usr/bin/env bash
# ctest: cost 20
# kill -9 of either process of dlock at any instant: nothing of the job lives on.
. "$(dirname "$0")/lib.sh"
need python3

python3 - "$DLOCK" "$(here 100)" <<'PYTHON'
import os, random, select, signal, subprocess, sys, time

dlock = sys.argv[1]
bound = float(sys.argv[2])
# A shell, its child, one that ignores SIGTERM, and a daemon that forked twice.
JOB = """
sh -c 'trap "" TERM HUP INT; while :; do sleep 1000; done' &
setsid sh -c 'setsid sleep 1000 & exit 0' &
sleep 1000 &
sleep 1000
"""
random.seed(20261121)
took = []

def children(pid):
    try:
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []

for round in range(200):
    # The job's processes alone keep this pipe open: dlock gives up what it inherited once the
    # command runs.  So its end is the death of the last of them.
    alive, held = os.pipe()
    os.set_inheritable(held, True)
    launcher = subprocess.Popen([dlock, "run", "-q", "--key", "k", "--", "sh", "-c", JOB],
                             close_fds=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(held)
    time.sleep(random.uniform(0, 0.06))
    victim = launcher.pid
    if round % 2:
        victim = (children(launcher.pid) or [launcher.pid])[0]
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    killed = time.monotonic()
    if not select.select([alive], [], [], 10)[0]:
        sys.exit(f"round {round}: OUTLIVED: something of the job is alive 10 s after kill -9 of "
                 f"{'the supervisor' if victim != launcher.pid else 'the launcher'}")
    took.append(time.monotonic() - killed)
    os.close(alive)
    status = launcher.wait(timeout=10)
    if victim != launcher.pid and status not in (79, 70):
        sys.exit(f"round {round}: exit status {status} after the supervisor was killed")
    # And the lock is free: at once, or as soon as the supervisor is through.
    if subprocess.call([dlock, "run", "--key", "k", "--wait", "10", "--", "true"]) != 0:
        sys.exit(f"round {round}: the lock is not free")

took.sort()
print(f"dead after: median {took[100] * 1000:.1f} ms, worst {took[-1] * 1000:.1f} ms")
late = [t for t in took if t * 1000 > bound]
if len(late) > 10:
    sys.exit(f"{len(late)} of 200 jobs lived on for more than {bound} ms")
PYTHON
