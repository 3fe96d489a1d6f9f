#!/usr/bin/env bash
# A command that dies of signal N makes dlock exit with 128+N; one that a signal stops, or does
# nothing to, lives on under the lock.
. "$(dirname "$0")/lib.sh"

need python3

# Python, because a shell cannot tell whether dlock exited with 128+N or died of N itself.
cat >"$tmp/harness.py" <<'PY'
import os, resource, signal, subprocess, sys, time

DLOCK = os.environ['DLOCK']
STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}


def prepare():
    # A group of its own, with a parent outside: else SIGTSTP would not stop it.
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)


def start(sig):
    return subprocess.Popen(
        [DLOCK, 'run', '--key', 'job', '--', 'sh', '-c', f'echo $$; kill -{sig} $$; exit 9'],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)


def state(pid):
    with open(f'/proc/{pid}/stat') as file:
        return file.read().rpartition(')')[2].split()[0]


def is_held():
    return subprocess.run([DLOCK, 'run', '-q', '-n', '-k', 'job', '--', 'true']).returncode == 75


def check(sig):
    name = signal.Signals(sig).name
    dlock = start(sig)
    want = 9 if sig in STOPPING | HARMLESS else 128 + sig
    if sig in STOPPING:
        pid = int(dlock.stdout.readline())
        end = time.monotonic() + 30
        while state(pid) != 'T':
            if time.monotonic() > end:
                return f'{name}: the command was not stopped'
            time.sleep(0.01)
        if not is_held():
            return f'{name}: the lock is free while the command is stopped'
        if dlock.poll() is not None:
            return f'{name}: dlock ended while the command was stopped'
        dlock.send_signal(signal.SIGCONT)
    errors = dlock.communicate(timeout=30)[1]
    if dlock.returncode != want:
        return f'{name}: expected exit status {want}, got {dlock.returncode}'
    if errors:
        return f'{name}: dlock said: {errors}'


problems = list(filter(None, map(check, range(1, 32))))
sys.exit('\n'.join(problems) or None)
PY
python3 "$tmp/harness.py" || fail "dlock does not report as it should how the command was ended"

expect_status 0 "$DLOCK" run --nonblock --key job -- true
