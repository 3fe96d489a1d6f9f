#!/usr/bin/env bash
# A signal that the kernel sends to dlock alone reaches the command: SIGHUP when the terminal of a session leader is
# gone, SIGALRM of a timer set before exec.  What the terminal sends to the whole group reaches it once.  A SIGPIPE that
# dlock's own message raises ends nothing.
. "$(dirname "$0")/lib.sh"
need python3
cd "$tmp"
export DLOCK

cat >catch.py <<'PYTHON'
import signal, sys
names = sys.argv[1:]
numbers = {getattr(signal, name) for name in names}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
with open("caught", "w", buffering=1) as caught:
    open("ready", "w").close()
    while True:
        got = signal.sigtimedwait(numbers, 30)
        print(signal.Signals(got.si_signo).name if got else "nothing", file=caught)
        if not got or got.si_signo in (signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP):
            break
PYTHON

# A timer that is set before exec.
cat >alarm.py <<'PYTHON'
import os, signal
signal.alarm(3)
dlock = os.environ["DLOCK"]
os.execv(dlock, [dlock, "run", "-q", "-k", "job", "--", "python3", "catch.py", "SIGALRM"])
PYTHON
expect_status 0 timeout -k 1 40 python3 alarm.py
assert_equal SIGALRM "$(<caught)" "what the command got of alarm(2)"
assert_free job

# terminal.py WHAT ARGUMENTS...: dlock as session leader on a terminal of its own; then WHAT happens to that terminal.
cat >terminal.py <<'PYTHON'
import fcntl, os, pty, signal, struct, sys, termios, time
def wait_for(what):
    for _ in range(3000):
        if what(): return
        time.sleep(0.01)
    sys.exit("not in time")
dlock = os.environ["DLOCK"]
pid, master = pty.fork()
if pid == 0:
    os.execv(dlock, [dlock, "run", "-q", "-k", "job", "--", *sys.argv[2:]])
wait_for(lambda: os.path.exists("ready"))
if sys.argv[1] == "close":
    os.close(master)
else:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
    wait_for(lambda: open("caught").read())
    os.kill(pid, signal.SIGUSR1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
rm -f ready caught
got=$(timeout -k 1 60 python3 terminal.py close python3 catch.py SIGHUP)
assert_equal SIGHUP "$(<caught)" "what the command got when the terminal was closed"
assert_equal 0 "$got" "status when the terminal was closed"
assert_free job
rm -f ready
got=$(timeout -k 1 60 python3 terminal.py close sh -c 'touch ready; exec sleep 1000')
assert_equal 129 "$got" "status of a command that dies of SIGHUP when the terminal is closed"
assert_free job
rm -f ready caught
timeout -k 1 60 python3 terminal.py resize python3 catch.py SIGWINCH SIGUSR1 >/dev/null
assert_equal $'SIGWINCH\nSIGUSR1' "$(<caught)" "what the command got when the terminal got another size"

# stderr is a pipe that nobody reads any more.
# shellcheck disable=SC2119  # no arguments
hold
"$DLOCK" run -v -k job -w 60 -- touch has-run 2> >(exec true) &
waiter=$!
sleep 1.5  # two of its messages
release
wait "$waiter" || fail "a waiter whose stderr is closed ended with status $?"
[[ -e has-run ]] || fail "the command of a waiter whose stderr is closed has not run"
