#!/usr/bin/env bash
# ctest: cost 30
# kill -9 of either process of dlock, while it waits and while the job runs, and at any instant: the other one writes the
# last event of the run, and there is never a second one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

cat >kill.py <<'PYTHON'
import json, os, random, signal, subprocess, sys, time

dlock = sys.argv[1]
random.seed(20261128)


def children(pid):
    try:
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def lines():
    try:
        return [json.loads(line) for line in open("log")]
    except FileNotFoundError:
        return []


def wait_for(what, condition):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not within 30 s: {what}: {lines()}")
        time.sleep(0.002)


def run(*options):
    return subprocess.Popen([dlock, "run", "-q", *options, "--", "sleep", "1000"], stdin=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def kill_one(victim, wait):
    """Kills one process of a run that waits, or whose job runs, and returns its last event."""
    if os.path.exists("log"):
        os.unlink("log")
    launcher = run("-k", "held" if wait else "job")
    wait_for("its first event", lines)
    os.kill(launcher.pid if victim == "launcher" else children(launcher.pid)[0], signal.SIGKILL)
    launcher.wait(timeout=30)
    wait_for("its last event", lambda: "outcome" in lines()[-1])
    wait_for("its end", lambda: subprocess.call([dlock, "run", "-q", "-k", "job", "--event-log", "", "--", "true"]) == 0)
    assert subprocess.call([sys.executable, os.environ["TEST_SOURCE"] + "/tests/event_log.py", "log"]) == 0
    return lines()[-1]


holder = subprocess.Popen([dlock, "run", "-q", "-k", "held", "--event-log", "", "--", "sleep", "1000"],
                          stdin=subprocess.DEVNULL)
while subprocess.call([dlock, "run", "-q", "-n", "-k", "held", "--event-log", "", "--", "true"]) != 75:
    time.sleep(0.01)
for wait, victim, event, status in ((False, "launcher", "released", None), (False, "supervisor", "lost", 79),
                                    (True, "launcher", "error", None), (True, "supervisor", "error", 70)):
    for _ in range(50):
        last = kill_one(victim, wait)
        told = tuple(last[name] for name in ("event", "outcome", "exit_status", "reason"))
        if told != (event, None, status, "killed"):
            sys.exit(f"{victim} killed, {'waiting' if wait else 'running'}: {told}")

# At any instant, as they come.
os.unlink("log")
for number in range(200):
    launcher = run("-k", ("held", "job")[number // 2 % 2])
    time.sleep(random.uniform(0, 0.03))
    victim = launcher.pid if number % 2 else (children(launcher.pid) or [launcher.pid])[0]
    os.kill(victim, signal.SIGKILL)
    launcher.wait(timeout=30)
    wait_for("its end", lambda: subprocess.call([dlock, "run", "-q", "-k", "job", "--event-log", "", "--", "true"]) == 0)
runs = {line["run"] for line in lines()}
wait_for("the last events", lambda: len({line["run"] for line in lines() if "outcome" in line}) == len(runs))
if len(runs) < 50:
    sys.exit(f"only {len(runs)} runs have written anything")
# In the middle of write(2), which takes some microseconds: then the line is there twice.
twice, ended = 0, set()
with open("log") as log:
    texts = log.readlines()
with open("log", "w") as log:
    for text in texts:
        line = json.loads(text)
        if "outcome" in line and line["run"] in ended:
            twice += 1
            continue
        if "outcome" in line:
            ended.add(line["run"])
        log.write(text)
if twice > 2:
    sys.exit(f"{twice} runs have two last events")
holder.terminate()
holder.wait()
PYTHON
python3 kill.py "$DLOCK"
check_log log
