#!/usr/bin/env bash
# ctest: cost 20
# kill -9 of any process of dlock acquire --while, at any instant: another one writes the last event.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

cat >kill.py <<'PYTHON'
import glob, json, os, random, signal, subprocess, sys, time

dlock = sys.argv[1]
random.seed(20261128)


def processes_of(script):
    """Of dlock: the one that the script has started, and the two that keep the lock for it."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if words[0].endswith(f" for pid {script}") or (words[0] == dlock and str(script) in words):
            found.append(int(path.split("/")[2]))
    return found


def events():
    try:
        with open("log", encoding="utf-8") as log:
            return [json.loads(line) for line in log]
    except FileNotFoundError:
        return []


def is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


twice = 0
for number in range(120):
    if os.path.exists("log"):
        os.unlink("log")
    script = subprocess.Popen(["sh", "-c", f"{dlock} acquire -q -k job --kill-after 0.2 --while $$ >token || exit 3; exec sleep 1000"],
                              stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(random.uniform(0, 0.04))
    try:
        os.kill(random.choice(processes_of(script.pid)), signal.SIGKILL)
    except (IndexError, ProcessLookupError):  # there was none yet, or it has ended
        pass
    time.sleep(0.01)
    script.terminate()
    script.wait()
    end = time.monotonic() + 30
    while is_there(script.pid) or processes_of(script.pid):  # a child of the shell is no dlock yet
        if time.monotonic() > end:
            sys.exit(f"round {number}: still there: {processes_of(script.pid)}")
        time.sleep(0.01)
    lines = events()
    if not lines:  # killed before it had started another process
        continue
    last = [line for line in lines if "outcome" in line]
    twice += len(last) == 2  # killed in the middle of write(2)
    if not last or len(last) > 2 or twice > 1 or "outcome" not in lines[-1]:
        sys.exit(f"round {number}: {lines}")
PYTHON
python3 kill.py "$DLOCK"
