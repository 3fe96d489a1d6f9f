#!/usr/bin/env bash
# Ctrl-C, Ctrl-Z, fg, bg and pipelines in a shell on a terminal behave as without dlock.
. "$(dirname "$0")/lib.sh"
need python3

python3 - "$DLOCK" "$TEST_DLOCK" "$tmp" <<'PYTHON'
import os, pty, re, select, signal, sys, time

dlock, dlock_test, tmp = sys.argv[1:4]

class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # python ignores it
            env = dict(os.environ, PS1="@@ ", PS2="", TERM="dumb", HISTFILE="/dev/null")
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], env)
        self.seen = ""
        self.prompt()
        self.line("set +H; stty -echo")

    def read_until(self, pattern, seconds=15):
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.seen)
            if found:
                before = self.seen[:found.end()]
                self.seen = self.seen[found.end():]
                return before
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit(f"no {pattern!r} within {seconds} s; the terminal shows {self.seen!r}")
            self.seen += os.read(self.fd, 65536).decode(errors="replace")

    def prompt(self):
        return self.read_until(r"@@ $")

    def send(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        self.send(text + "\n")
        return self.prompt()

    def status(self):
        return int(re.search(r"=(\d+)=", self.line("echo =$?=")).group(1))

def expect(condition, sentence):
    if not condition:
        sys.exit(sentence)

def state(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]

def wait_for(condition, sentence, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(sentence)
        time.sleep(0.01)

def hold(command, key):
    """Starts a job of the shell that takes this lock, and waits until it has it."""
    shell.line(f"{dlock} run --key {key} -- {command} &")
    wait_for(lambda: os.spawnvp(os.P_WAIT, dlock, [dlock, "run", "-q", "-n", "--key", key, "--",
                                                   "true"]) == 75, f"{key} is not held")

shell = Shell()

# Ctrl-C ends the command, the shell sees 130, and the rest of a list or loop does not run.
shell.send(f"{dlock} run --key a -- sh -c 'echo r''eady; exec sleep 100'\n")
shell.read_until("ready")
shell.send("\x03")
shell.prompt()
expect(shell.status() == 130, "Ctrl-C does not give the status 130")
shell.send(f"for i in 1 2 3; do {dlock} run --key a -- sh -c \"echo r''ound $i; exec sleep 100\"; done; echo lo''oped\n")
shell.read_until("round 1")
shell.send("\x03")
out = shell.prompt()
expect("round 2" not in out and "looped" not in out, "Ctrl-C does not end a loop of the shell")

# A command that catches Ctrl-C gets it once and goes on.
shell.send(f"{dlock} run --key a -- python3 -c '\n"
           "import signal, time\n"
           "n = 0\n"
           "def caught(*_):\n"
           "    global n\n"
           "    n += 1\n"
           "signal.signal(signal.SIGINT, caught)\n"
           "print(\"rea\" + \"dy\", flush=True)\n"
           "while n == 0: time.sleep(0.01)\n"
           "time.sleep(0.3)\n"
           "print(\"got=%d\" % n, flush=True)'\n")
shell.read_until("ready")
shell.send("\x03")
shell.read_until("got=1\r")
shell.prompt()
expect(shell.status() == 0, "a command that caught Ctrl-C does not end with its own status")

# Ctrl-C while waiting.
hold("sleep 100", "held")
shell.send(f"{dlock} run --key held -- echo no\n")
shell.read_until(", held\r")
shell.send("\x03")
shell.prompt()
expect(shell.status() == 130, "Ctrl-C while waiting does not give 130")
shell.line("kill %1; wait")

# Ctrl-Z for longer than the ttl of a leased lock: still held, and fg goes on.
store = f"memory://{tmp}/store"
count, pidfile = os.path.join(tmp, "count"), os.path.join(tmp, "pid")
loop = os.path.join(tmp, "loop.py")  # one process: a shell in the middle of vfork stops otherwise
open(loop, "w").write(f"""
import os, time
open({pidfile!r}, "w").write(str(os.getpid()))
print("sta" + "rted", flush=True)
while True:
    open({count!r}, "a").write("x\\n")
    time.sleep(0.05)
""")
shell.send(f"{dlock_test} run --backend {store} --ttl 1s --key z -- python3 {loop}\n")
shell.read_until("started")
wait_for(lambda: os.path.exists(count), "the loop does not run")
shell.send("\x1a")
out = shell.prompt()
expect("Stopped" in out, f"Ctrl-Z does not stop the job: {out!r}")
pid = int(open(pidfile).read())
wait_for(lambda: state(pid) == "T", "Ctrl-Z leaves the command running")
for _ in range(6):  # three times the ttl
    expect(os.spawnvp(os.P_WAIT, dlock_test,
                      [dlock_test, "run", "-q", "--backend", store, "--key", "z", "-w", "0.5", "--",
                       "true"]) == 75, "a suspended job loses its lock")
size = os.path.getsize(count)
expect(state(pid) == "T", "the suspended command went on")
shell.send("fg\n")
wait_for(lambda: os.path.getsize(count) > size + 10, "fg does not continue the command")
shell.send("\x1a")
shell.prompt()
size = os.path.getsize(count)
shell.line("bg")
wait_for(lambda: os.path.getsize(count) > size + 10, "bg does not continue the command")
shell.send("fg\n")
time.sleep(0.2)
shell.send("\x03")
shell.prompt()
expect(shell.status() == 130, "a job that was stopped twice does not end by Ctrl-C")

# A suspended waiter does not start its command behind the user's back.
os.mkfifo(f"{tmp}/fifo")
hold(f"sh -c 'read x <{tmp}/fifo'", "held")
shell.send(f"{dlock} run --key held -- sh -c 'echo ran >{tmp}/ran; echo d''one'\n")
shell.read_until(": waiting ")
shell.send("\x1a")
shell.prompt()
shell.line(f"echo >{tmp}/fifo; sleep 0.5")
expect(not os.path.exists(f"{tmp}/ran"), "a suspended waiter starts its command")
shell.send("fg\n")
shell.read_until("done")
shell.prompt()

# A reader in the background is stopped by the terminal, and fg lets it read.
shell.send(f"{dlock} run --key r -- sh -c 'read x; echo got-$x' &\n")
wait_for(lambda: "Stopped" in shell.line("sleep 0.1; jobs"), "a background reader is not stopped")
shell.send("fg\n")
time.sleep(0.2)
shell.send("hello\n")
shell.read_until("got-hello")
shell.prompt()

# In a pipeline.
out = shell.line(f"{dlock} run --key p -- seq 3 | tac | tr '\\n' ,")
expect("3,2,1," in out, f"a pipeline does not work: {out!r}")
out = shell.line(f"{dlock} run --key p -- yes | head -1; echo ${{PIPESTATUS[0]}}")
expect("y\r\n141" in out, f"a command is not ended by SIGPIPE: {out!r}")
shell.send(f"{dlock} run --key p -- cat /usr/share/common-licenses/GPL-3 | TERM=vt100 less -X\n")
shell.read_until("GNU GENERAL PUBLIC LICENSE")
shell.send("q")
shell.prompt()

# kill -TSTP at dlock alone stops the command too, and kill -CONT continues both.
hold(f"sh -c 'echo $$ >{tmp}/pid2; exec sleep 100'", "s")
wait_for(lambda: os.path.exists(f"{tmp}/pid2") and open(f"{tmp}/pid2").read(), "the job does not run")
shell.line(f"echo $! >{tmp}/launcher")
launcher, command = int(open(f"{tmp}/launcher").read()), int(open(f"{tmp}/pid2").read())
os.kill(launcher, 20)
wait_for(lambda: state(command) == "T" and state(launcher) == "T", "kill -TSTP does not stop both")
os.kill(launcher, 18)
wait_for(lambda: state(command) == "S" and state(launcher) == "S", "kill -CONT does not continue both")
shell.line("kill %1; wait")
PYTHON
