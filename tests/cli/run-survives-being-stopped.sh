#!/usr/bin/env bash
# ctest: cost 20
# SIGSTOP of the launcher: the lease is renewed.  Of the supervisor: the tree is dead before the lease ends.
# Of both (a frozen machine): the job is ended as soon as they go on.
. "$(dirname "$0")/lib.sh"
need python3

python3 - "$TEST_DLOCK" "$tmp" <<'PYTHON'
import fcntl, os, signal, subprocess, sys, time

dlock, tmp = sys.argv[1:3]
store = f"memory://{tmp}/store"
oracle, status_file = os.path.join(tmp, "oracle"), os.path.join(tmp, "status")
open(oracle, "w").close()
run = [dlock, "run", "--backend", store, "--key", "k", "--ttl", "3s"]
# Refuses to share the oracle with anybody, and never ends; its grandchild ignores SIGTERM.
JOB = f"""
exec 9<>{oracle}
flock -n 9 || exit 99
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
echo started
trap "" TERM
while :; do sleep 1; done
"""

def start(*options):
    process = subprocess.Popen(run + list(options) + ["--", "sh", "-c", JOB],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    launcher = process.pid
    supervisor = int(open(f"/proc/{launcher}/task/{launcher}/children").read().split()[0])
    return process, launcher, supervisor

def job_is_dead():
    with open(oracle) as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

def expect(condition, sentence):
    if not condition:
        sys.exit(sentence)

def next_holder():  # waits for the lock as another machine would, and looks at the oracle
    return subprocess.Popen(run + ["-q", "--", "sh", "-c", f"flock -n {oracle} true"])

# The launcher stopped for more than two leases.
process, launcher, supervisor = start()
os.kill(launcher, signal.SIGSTOP)
other = next_holder()
time.sleep(7)
expect(not job_is_dead(), "with the launcher stopped the job was ended")
expect(other.poll() is None, "with the launcher stopped the lock was given away")
os.kill(launcher, signal.SIGCONT)
os.kill(launcher, signal.SIGTERM)  # the job ignores it, and so does the rest: SIGKILL ends them
os.kill(launcher, signal.SIGKILL)
expect(other.wait(20) == 0, "the next holder overlaps with a job whose launcher was killed")
process.communicate()

# The supervisor stopped.
process, launcher, supervisor = start("--status-file", status_file)
other = next_holder()
os.kill(supervisor, signal.SIGSTOP)
stopped = time.monotonic()
expect(other.wait(20) == 0, "the next holder overlaps with a job whose supervisor was stopped")
out, err = process.communicate(timeout=10)
expect(process.returncode == 79, f"status {process.returncode} when the supervisor was stopped: {err}")
expect("did not renew the lock in time" in err, f"nothing says what happened: {err}")
expect('"outcome":"lost"' in open(status_file).read(), "the status file does not say lost")

# The supervisor stopped for less than the lease: nobody notices.
process, launcher, supervisor = start()
os.kill(supervisor, signal.SIGSTOP)
time.sleep(0.7)
os.kill(supervisor, signal.SIGCONT)
time.sleep(3)
expect(not job_is_dead(), "a job whose supervisor was stopped for 0.7 s of 3 s was ended")
process.kill()
process.communicate()

# Both stopped past the lease: the tree is dead soon after they go on.
process, launcher, supervisor = start("--kill-after", "0")
os.kill(launcher, signal.SIGSTOP)
os.kill(supervisor, signal.SIGSTOP)
time.sleep(4)
os.kill(supervisor, signal.SIGCONT)
os.kill(launcher, signal.SIGCONT)
thawed = time.monotonic()
while not job_is_dead():
    expect(time.monotonic() < thawed + 2, "after a thaw the job is not ended")
    time.sleep(0.002)
print(f"dead {1000 * (time.monotonic() - thawed):.1f} ms after the thaw")
expect(process.wait(10) == 79, "after a thaw the status is not 79")

# The file backend has no lease: a stopped supervisor holds its lock, and goes on.
locks = f"file://{tmp}/locks"
process = subprocess.Popen([dlock, "run", "--backend", locks, "--key", "k", "--", "sh", "-c",
                            "echo started; read x; exit 5"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
process.stdout.readline()
launcher = process.pid
supervisor = int(open(f"/proc/{launcher}/task/{launcher}/children").read().split()[0])
os.kill(supervisor, signal.SIGSTOP)
process.stdin.close()
expect(subprocess.call([dlock, "run", "-q", "--backend", locks, "--key", "k", "-w", "0.5", "--",
                        "true"]) == 75, "a stopped supervisor lets go of its flock")
os.kill(supervisor, signal.SIGCONT)
expect(process.wait(10) == 5, "a supervisor that was stopped loses the status of its command")
PYTHON
