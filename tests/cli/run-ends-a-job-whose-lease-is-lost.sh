#!/usr/bin/env bash
# ctest: cost 35
# Renewals and releases that fail, hang, come late or say that the lock is gone.
. "$(dirname "$0")/lib.sh"
need python3

python3 - "$TEST_DLOCK" "$tmp" <<'PYTHON'
import fcntl, json, os, signal, subprocess, sys, time

dlock, tmp = sys.argv[1:3]
control, store = os.path.join(tmp, "control"), os.path.join(tmp, "store")
oracle, status_file = os.path.join(tmp, "oracle"), os.path.join(tmp, "status")
open(oracle, "w").close()
faulty = f"faulty://{control}?wrap=memory://{store}"
STUBBORN = f'exec 9<>{oracle}; flock -n 9 || exit 99; trap "" TERM; echo started; while :; do sleep 1; done'

def expect(condition, sentence):
    if not condition:
        sys.exit(f"{case}: {sentence}")

def fault(*lines):
    with open(control + ".new", "w") as f:
        f.write("".join(line + "\n" for line in lines))
    os.rename(control + ".new", control)

def calls(name):
    try:
        return sum(line.startswith(name + " ") for line in open(control + ".log"))
    except FileNotFoundError:
        return 0

def start(command, *options, ttl="3s"):
    for name in (control, control + ".log"):
        if os.path.exists(name):
            os.unlink(name)
    process = subprocess.Popen([dlock, "run", "--backend", faulty, "--key", "k", "--ttl", ttl,
                                "--status-file", status_file, *options, "--", "sh", "-c", command],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    expect(process.stdout.readline() == "started\n", "the job does not start")
    return process

def finish(process, seconds=30):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, err, json.load(open(status_file))

def overlap_is_excluded():
    """Waits for the lock as another machine would; the oracle must be free then."""
    return subprocess.call([dlock, "run", "-q", "--backend", f"memory://{store}", "--key", "k", "-w",
                            "20", "--", "flock", "-n", oracle, "true"]) == 0

case = "renewals fail for less than the margin"
process = start("echo started; read x; exit 7", ttl="6s")
fault("renew unreachable 2")
while calls("renew") < 4:
    time.sleep(0.02)
process.stdin.write("\n")
status, err, report = finish(process)
expect(status == 7, f"status {status}: {err}")
expect(err.count("cannot renew") == 1, f"not exactly one warning: {err}")
expect(report["outcome"] == "completed", f"{report}")

case = "renewals fail for longer"
process = start(STUBBORN)
fault("renew unreachable")
expect(overlap_is_excluded(), "the job is alive when the lease is over")
status, err, report = finish(process)
expect(status == 79 and report["outcome"] == "lost", f"status {status}, {report}")
expect(err.count("cannot renew") == 1 and 'lost "k"' in err, f"messages: {err}")

case = "renewals hang"
process = start(STUBBORN)
fault("renew hang")
expect(overlap_is_excluded(), "the job is alive when the lease is over")
expect(finish(process)[0] == 79, "not 79")

case = "renewals hang and heed neither deadline nor cancel"
process = start(STUBBORN)
fault("renew ignore-deadline 60s")
expect(overlap_is_excluded(), "the job is alive when the lease is over")
expect(finish(process)[0] == 79, "not 79")

case = "a renewal succeeds late"
process = start(STUBBORN)
fault("renew late")
expect(overlap_is_excluded(), "the job is alive when the lease is over")
expect(finish(process)[0] == 79, "not 79")

case = "the lock is gone for certain"
process = start("echo started; exec sleep 1000")
fault("renew lost")
begun = time.monotonic()
subprocess.Popen([dlock, "run", "-q", "--backend", f"memory://{store}", "--key", "other", "--", "true"]).wait()
status, err, report = finish(process)
expect(status == 79 and report["outcome"] == "lost", f"status {status}, {report}")
expect('lost "k"' in err and "ending sh" in err, f"messages: {err}")

case = "--on-lost ignore"
process = start("echo started; sleep 4; exit 3", "--on-lost", "ignore")
fault("renew lost")
status, err, report = finish(process)
expect(status == 79 and "goes on without the lock" in err, f"status {status}: {err}")

case = "--on-lost kill"
process = start("trap 'echo term >&2' TERM; echo started; while :; do sleep 0.1; done", "--on-lost", "kill")
fault("renew lost")
status, err, report = finish(process)
expect(status == 79 and "term" not in err, f"status {status}: {err}")

case = "the release fails for a while"
process = start("echo started; read x; exit 4")
fault("release unreachable 2")
process.stdin.write("\n")
status, err, report = finish(process)
expect(status == 4 and err.count("cannot release") == 1, f"status {status}: {err}")
expect(calls("release") == 3, f"{calls('release')} tries")
expect(overlap_is_excluded(), "not free")

case = "the release fails for good"
process = start("echo started; read x; exit 4")
fault("release unreachable")
process.stdin.write("\n")
status, err, report = finish(process)
expect(status == 4 and "ends by itself" in err, f"status {status}: {err}")

case = "the release fails and the user has enough"
process = start("echo started; read x; exit 4", ttl="1m")
fault("release unreachable")
process.stdin.write("\n")
process.stdin.flush()
while calls("release") < 2:
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
status, err, report = finish(process, 10)
expect(status == 4, f"status {status}: {err}")

case = "the release finds the lock gone"
os.unlink(store)
process = start("echo started; read x; exit 4", ttl="30s")
fault("release lost")
process.stdin.write("\n")
status, err, report = finish(process)
expect(status == 79 and report["outcome"] == "lost", f"status {status}, {report}, {err}")

for fault_line, want in (("acquire unreachable", 69), ("acquire denied", 77), ("open unreachable", 69),
                         ("open denied", 77), ("acquire late", 69)):
    case = fault_line
    if os.path.exists(store):
        os.unlink(store)
    fault(fault_line)
    done = subprocess.run([dlock, "run", "--backend", faulty, "--key", "k", "--ttl", "1s", "--", "sh",
                           "-c", f"echo ran >{tmp}/ran"], capture_output=True, text=True, timeout=30)
    expect(done.returncode == want, f"status {done.returncode}, not {want}: {done.stderr}")
    expect(not os.path.exists(f"{tmp}/ran"), "the command was started")
    expect(done.stderr.count("\n") == 1, f"not one line: {done.stderr}")

case = "a waiter whose grant comes late waits on"
fault("acquire late 1")
os.unlink(control + ".log")
holder = subprocess.Popen([dlock, "run", "-q", "--backend", f"memory://{store}", "--key", "k", "--", "sh", "-c",
                           "echo started; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
holder.stdout.readline()
waiter = subprocess.Popen([dlock, "run", "--backend", faulty, "--key", "k", "--ttl", "1s", "-w", "60", "--", "true"],
                          stderr=subprocess.PIPE, text=True)
line = waiter.stderr.readline()
expect("waiting for" in line, f"the waiter is not told of the holder: {line}")
holder.communicate(b"\n")
expect(waiter.wait(30) == 0 and calls("acquire") == 2, f"{calls('acquire')} tries: {waiter.stderr.read()}")

case = "an acquire that hangs is ended by a signal"
fault("acquire hang")
os.unlink(control + ".log")
process = subprocess.Popen([dlock, "run", "--backend", faulty, "--key", "k", "--", "true"])
while calls("acquire") < 1:
    time.sleep(0.02)
process.terminate()
expect(process.wait(5) == 143, "not 143")
PYTHON
