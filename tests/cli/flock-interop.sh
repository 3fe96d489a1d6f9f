#!/usr/bin/env bash
# flock(1) on the same file waits for dlock and dlock for it, and each wakes the other at once.
. "$(dirname "$0")/lib.sh"
need flock python3

"$DLOCK" run --key job -- true # makes the file
[[ -f $locks/job ]] || fail "the lock file of the key job is not $locks/job"

expect_status 1 "$DLOCK" run --key job -- flock -n "$locks/job" true
expect_status 75 flock "$locks/job" "$DLOCK" run -q --key job -n -- true
expect_status 0 "$DLOCK" run --key job --shared -- flock -n -s "$locks/job" true
expect_status 1 "$DLOCK" run --key job --shared -- flock -n -x "$locks/job" true
message=$(flock "$locks/job" "$DLOCK" run --key job -n -- true 2>&1) || true
assert_contains "$message" '"job" is held by' "the message for a lock of flock(1)"
assert_contains "$message" "flock" "the message for a lock of flock(1)"

python3 - "$DLOCK" "$locks/job" "$(here 50)" <<'PYTHON'
import os, subprocess, sys, time

dlock, path, bound = sys.argv[1:]
wrap = {"dlock": [dlock, "run", "-q", "--key", "job", "--"], "flock": ["flock", path]}
STAMP = ["date", "+%s.%N"]

inode = f":{os.stat(path).st_ino} "

def blocked():  # somebody waits for this file
    return any("->" in line and inode in line for line in open("/proc/locks"))

for first, second in (("dlock", "flock"), ("flock", "dlock"), ("dlock", "dlock")):
    gaps = []
    for _ in range(15):
        holder = subprocess.Popen(wrap[first] + ["sh", "-c", "echo in; read x; date +%s.%N"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        waiter = subprocess.Popen(wrap[second] + STAMP, stdout=subprocess.PIPE)
        while not blocked():
            time.sleep(0.005)
        holder.stdin.write(b"\n")
        holder.stdin.close()
        ended = float(holder.stdout.read())
        began = float(waiter.communicate()[0])
        holder.wait()
        gaps.append(began - ended)
    gaps.sort()
    print(f"{first} -> {second}: median {gaps[7] * 1000:.1f} ms, worst {gaps[-1] * 1000:.1f} ms")
    # The median: a single one may be unlucky on a busy machine.
    if gaps[7] * 1000 > float(bound):
        sys.exit(f"{second} needs {gaps[7]:.3f} s to notice that {first} is done")
PYTHON
