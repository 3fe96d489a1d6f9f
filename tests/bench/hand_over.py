#!/usr/bin/env python3
"""What it costs to hand a lock over to each of many waiters.

hand_over.py dlock|flock exclusive|shared|slots WAITERS RUNS
    prints the time and the CPU time for one hand-over, in microseconds, as the median of so many runs.
    $DLOCK is the dlock, and $DLOCK_BACKEND the lock directory, or $LOCK_FILE the file of flock(1).

A holder keeps the lock until all wait, then it ends.  Each waiter runs true(1).  The time is that from the end of the
holder's command until all waiters have exited, divided by their number.  The CPU time is that of all processes, of
dlock and of flock(1) as of their commands, from the moment when all wait.  With `slots` there are two slots, and two
holders; with `shared` the waiters share, and wait for a holder that does not.  flock(1) has no slots: it is measured
with an exclusive lock then.

A run is broken off after $HAND_OVER_SECONDS (60); what it cost until then is divided by the hand-overs until then.
"""
import json
import os
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../campaign")
sys.dont_write_bytecode = True
import processes  # noqa: E402

TOOL, MODE, WAITERS, RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
LONGEST = float(os.environ.get("HAND_OVER_SECONDS", "60"))
KEY = f"hand-over-{MODE}-{WAITERS}"
HOLD = ["sh", "-c", "echo in; read x"]


def command(options, what):
    if TOOL == "flock":
        shared = ["--shared"] if "--shared" in options else []
        return ["flock", *shared, os.environ["LOCK_FILE"], *what]
    return [os.environ["DLOCK"], "run", "-q", "-k", KEY, *options, "--", *what]


def waiting():
    """How many wait."""
    if TOOL == "flock":
        inode = f":{os.stat(os.environ['LOCK_FILE']).st_ino} "
        with open("/proc/locks", encoding="ascii") as locks:
            return sum("->" in line and inode in line for line in locks)
    show = subprocess.run([os.environ["DLOCK"], "show", "--json", KEY], capture_output=True, check=True)
    return len(json.loads(show.stdout)["waiters"])


def below(pid):
    return [pid] + [other for child in processes.children(pid) for other in below(child)]


def cpu_of_living():
    """The CPU time of all processes below us that have not ended, in microseconds."""
    total = 0
    for pid in below(os.getpid())[1:]:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
        except OSError:
            pass
    return total / 1000


def cpu_of_ended():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6


def run():
    """The time and the CPU time for one hand-over."""
    holding = {"slots": ["--slots", "2"]}.get(MODE, [])
    options = {"slots": ["--slots", "2"], "shared": ["--shared"]}.get(MODE, [])
    holders = []
    for _ in range(2 if MODE == "slots" and TOOL == "dlock" else 1):
        holders.append(subprocess.Popen(command(holding, HOLD), stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert holders[-1].stdout.readline() == b"in\n"
    waiters = {subprocess.Popen(command(options, ["/bin/true"]), stdin=subprocess.DEVNULL).pid
               for _ in range(WAITERS)}
    end = time.monotonic() + 120
    while waiting() < WAITERS:
        if time.monotonic() > end:
            sys.exit(f"hand_over.py: {WAITERS} waiters do not wait after 120 s")
        time.sleep(0.05)
    time.sleep(1)  # until what they do at their start is over, whatever it is
    before = cpu_of_living() + cpu_of_ended()
    begun = time.monotonic()
    for holder in holders:
        holder.stdin.close()
    left = set(waiters)
    while left and time.monotonic() < begun + LONGEST:
        signal.setitimer(signal.ITIMER_REAL, max(0.001, begun + LONGEST - time.monotonic()))
        try:
            pid, status = os.wait()
        except InterruptedError:
            break
        if pid in left:
            left.remove(pid)
            assert status == 0, f"a waiter has ended with status {os.waitstatus_to_exitcode(status)}"
    took = (time.monotonic() - begun) * 1e6
    signal.setitimer(signal.ITIMER_REAL, 0)
    done = WAITERS - len(left)
    if left:
        print(f"hand_over.py: {done} of {WAITERS} hand-overs by {TOOL} in {LONGEST:g} s", file=sys.stderr)
    else:
        # The holder, and what a waiter has left to others to wait for.
        try:
            while True:
                os.wait()
        except ChildProcessError:
            pass
    cpu = cpu_of_living() + cpu_of_ended() - before
    processes.kill_all(set())
    for holder in holders:
        holder.returncode = 0  # it was waited for
    return took / max(done, 1), cpu / max(done, 1)


def interrupt(_number, _frame):
    raise InterruptedError


signal.signal(signal.SIGALRM, interrupt)
processes.adopt_orphans()
try:
    measured = [run() for _ in range(RUNS)]
finally:
    processes.kill_all(set())
for values in zip(*measured):
    print(round(sorted(values)[len(values) // 2]))
