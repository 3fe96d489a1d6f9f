#!/usr/bin/env bash
# 20 processes, 50 increments each of an unprotected counter, one in ten wrappers killed: exact.
# Arguments are options for dlock run.
. "$(dirname "$0")/lib.sh"
need python3 flock

python3 - "$DLOCK" "$tmp" "$@" <<'PYTHON'
import os, random, signal, subprocess, sys, threading, time

dlock, tmp, *options = sys.argv[1:]
for name, content in (("counter", "0\n"), ("fence", "0\n"), ("oracle", ""), ("committed", "")):
    open(os.path.join(tmp, name), "w").write(content)

# The oracle: a flock of the job's own, free exactly when the last holder is dead.  A refusal is an
# overlap.  What is committed is counted apart, by appending: a lost update shows as a difference.
JOB = r"""
cd "$1" || exit 96
exec 9<>oracle
flock -n 9 || { echo OVERLAP >&2; exit 99; }
read -r last <fence || last=0
[ "$DLOCK_FENCE" -gt "$last" ] || { echo "STALE FENCE $DLOCK_FENCE after $last" >&2; exit 98; }
echo "$DLOCK_FENCE" >fence.new && mv fence.new fence
read -r value <counter
echo $((value + 1)) >counter.new && mv counter.new counter
printf x >>committed
"""
errors = []
command = [dlock, "run", "-q", "--key", "counter", *options, "--", "sh", "-c", JOB, "job", tmp]
kills = []

def children(pid):
    try:
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []

def worker(seed):
    rng = random.Random(seed)
    successes = 0
    while successes < 50 and not errors:
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        kill = rng.random() < 0.1
        if kill:
            kills.append(seed)
            time.sleep(rng.uniform(0, 1.0))
            victim = process.pid
            if rng.random() < 0.3:
                victim = (children(process.pid) or [process.pid])[0]
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        err = process.communicate()[1]
        if process.returncode == 0:
            successes += 1
        elif not (kill and process.returncode in (-9, 70, 79)):
            errors.append(f"status {process.returncode}: {err.decode(errors='replace')}")
        if b"OVERLAP" in err or b"STALE" in err:
            errors.append(err.decode())

threads = [threading.Thread(target=worker, args=(i,)) for i in range(20)]
[t.start() for t in threads]
[t.join() for t in threads]
if errors:
    sys.exit("\n".join(errors[:5]))
value = int(open(os.path.join(tmp, "counter")).read())
committed = len(open(os.path.join(tmp, "committed")).read())
# One that was killed between counting and committing has counted.
if not 1000 <= committed <= value <= committed + len(kills):
    sys.exit(f"the counter says {value}, {committed} were committed, {len(kills)} were killed")
fence = open(os.path.join(tmp, "fence")).read().strip()
print(f"{committed} increments, {len(kills)} kills, last fencing token {fence}")
PYTHON
