"""The clients of a campaign: each takes one lock after the other, in a way and with options that it draws."""
import math
import os
import signal
import subprocess
import sys
import threading

import processes

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "oracle.py")
SLOTS = 2
LOST = 79  # what dlock run says
# Which modes a key has.  Slots cannot be mixed with the others.
KEYS = {"solo": ["exclusive"], "pair": ["exclusive"], "both": ["exclusive", "shared", "shared"], "slots": ["slots"]}
# The jobs of `dlock once` have keys of their own: once0, once1 and so on, a new one when one is done.
ONCE = "once"
# Some runs take both.
TOGETHER = ["solo", "pair"]
MODES = {"exclusive": [], "shared": ["--shared"], "slots": ["--slots", str(SLOTS)]}
LONGEST_TTL = 4
# Ways to protect the command: it is below `dlock run`; it is the process that `dlock acquire --while` keeps the
# lock for; or it ends, at the latest, long before a lease that nobody renews, and `dlock release` follows.
SCRIPTS = {
    "while": 'lock=$("$DLOCK" acquire --export --while $$ %s) || exit; eval "$lock"; exec "$@"',
    "lease": 'lock=$("$DLOCK" acquire --export --ttl 4 %s) || exit; eval "$lock"; status=0\n'
             'timeout -s KILL 1.5 "$@" || status=$?\n'
             'IFS=$\'\\n\'; for key in $DLOCK_KEYS; do "$DLOCK" release -q --connect-timeout 2s -k "$key"; done; '
             'exit $status'}
# Whose locks do not end with a process or a connection.
LEASES = ["redis", "redlock", "mysql", "mysql-version", "postgres"]
# Longer than any wait, hold and stop of a run together.
HANGS_AFTER = 120


class Run:
    """One command under a lock, from its start until all its processes have ended."""

    def __init__(self, campaign, keys, mode, ttl=2, wait=30, hold=0.01, habit="plain", way="run"):
        self.campaign, self.keys, self.mode, self.ttl, self.wait, self.way = campaign, keys, mode, ttl, wait, way
        self.number = campaign.next_number()
        options = ["-q", *(f"--key={key}" for key in keys), *MODES[mode], *(["-w", str(wait)] if wait else ["-n"]),
                   "--connect-timeout", "2s"]
        self.env = campaign.servers.env
        if way in ("run", "once"):
            remember = ["--remember=1h"] if way == "once" else []
            self.command = [self.env["DLOCK"], way, *options, *remember, "--ttl", f"{ttl}s", "--"]
        else:
            self.command = ["bash", "-c", SCRIPTS[way] % " ".join(options), "script"]
        if way == "while":
            self.env = self.env | {"DLOCK_TTL": f"{ttl}s"}
        self.command += [sys.executable, "-I", "-S", ORACLE, campaign.oracle_dir, ",".join(keys), mode, str(SLOTS)]
        self.tail = [f"{hold:.3f}", habit]
        self.hits = set()     # (what, role) of the faults that its processes have had
        self.stopped = set()  # roles that are stopped now
        self.granted_at, self.fences, self.is_out = None, {}, False
        self.ended_at, self.over = math.inf, threading.Event()
        # The key, when a force-release of its lock began, and when its command must have ended after that.
        self.force_released = self.force_released_at = self.ends_until = None

    def __str__(self):
        return (f"{self.way} {self.number} ({' '.join(self.keys)}, {self.mode}, ttl {self.ttl}, wait {self.wait}, "
                f"hold {' '.join(self.tail)})")

    def go(self):
        """Runs it to its end and tells the campaign what it saw."""
        campaign = self.campaign
        with campaign.lock:
            floors = ",".join(str(campaign.floor[key]) for key in self.keys)
        self.begun = processes.now()
        # A session of its own: Ctrl-C is for the campaign, which then ends them all.
        self.process = subprocess.Popen(
            self.command + [floors] + self.tail, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        campaign.log(f"{self} is pid {self.process.pid}")
        with campaign.lock:
            campaign.running[self.number] = self
        try:
            # Its pipes end with the last of its processes.
            out, err = self.process.communicate(timeout=HANGS_AFTER)
        except subprocess.TimeoutExpired:
            campaign.broken(f"LEFT BEHIND: {self} has not ended in {HANGS_AFTER} s: {self.describe()}")
            return
        finally:
            self.ended_at = processes.now()
            self.over.set()
            with campaign.lock:
                del campaign.running[self.number]
        self.note(out)
        status = self.process.returncode
        campaign.log(f"run {self.number} on {' '.join(self.keys)} ends with {status}; {err.strip()}")
        campaign.ended(self, status, err)

    def note(self, out):
        """What the protected command said."""
        for line in out.splitlines():
            time, word, rest = line.split(" ", 2)
            if word == "OVERLAP" and self.campaign.may_overlap(rest.split()[0], float(time)):
                self.campaign.log(f"run {self.number} overlaps a command that force-release ends", float(time))
                continue
            if word in ("OVERLAP", "STALE"):
                self.campaign.broken(f"{word} {rest}: {self}", float(time))
                continue
            self.campaign.log(f"run {self.number} {word} {rest}", float(time))
            if word == "out":
                self.is_out = True
            if word == "in":
                key, _, fence, _ = rest.split()
                self.granted_at, self.fences[key] = float(time), int(fence)

    def is_lost(self):
        """The script of `acquire --while` is ended by a signal, and tells no status of its own."""
        status = self.process.returncode
        if self.way == "while":
            return status in (-signal.SIGTERM, -signal.SIGKILL) and ("kill", "command") not in self.hits
        return status == LOST

    def why_lost(self):
        if self.force_released_at:
            return "force-release"
        # The supervisor renews the lease; the other processes do not matter to it.
        return "processes" if any(role == "supervisor" for _, role in self.hits) else "servers"

    def tree(self):
        """Its processes now, as (role, pid, parent)."""
        if self.way == "lease":
            return []  # what outlives its lease is not protected any more
        if self.way == "while":
            return self.tree_of_script()
        launcher = self.process.pid
        found = [("launcher", launcher, os.getpid())]
        for supervisor in processes.children(launcher)[:1]:
            found.append(("supervisor", supervisor, launcher))
            for command in processes.children(supervisor)[:1]:
                found.append(("command", command, supervisor))
                found += [("grandchild", pid, command) for pid in processes.children(command)[:1]]
        return found

    def tree_of_script(self):
        """While it waits, `dlock acquire` is in the place of the subshell, with a keeper below it.  When it has the
        lock, two processes, which have been orphaned and so are ours, keep that: the one that renews is the supervisor
        here, the other one the launcher."""
        script, us = self.process.pid, os.getpid()
        found = [("command", script, us)]
        titles = {f"for pid {script}": "supervisor", f"2 for pid {script}": "launcher"}
        for pid in processes.children(us):
            for title, role in titles.items():
                if processes.title(pid) == f"lock keeper {title}":
                    found.append((role, pid, us))
        waiting = [pid for pid in processes.children(script) if " acquire " in processes.title(pid)]
        for acquire in waiting if len(found) == 1 else []:
            found.append(("launcher", acquire, script))
            found += [("supervisor", pid, acquire) for pid in processes.children(acquire)[:1]]
        return found

    def has_command(self):
        """Whether something runs that a lock protects.  Who has lost one of two locks while it waits for the other
        begins anew, and goes on waiting."""
        if self.way == "while":
            return any(role == "launcher" and parent == os.getpid() for role, _, parent in self.tree())
        return any(role == "command" for role, _, _ in self.tree())

    def describe(self):
        return "; ".join(processes.describe(pid) for _, pid, _ in self.tree())


def draw_once(campaign, rng):
    """A job that is to be done, or that was done before."""
    key = campaign.present_job() if rng.random() < 0.7 else rng.choice(campaign.done_jobs() or [campaign.present_job()])
    return Run(campaign, [key], "exclusive", rng.choice([2, 3]), wait=rng.choice([0, 0.2, 1, 3, 6]), way="once",
               hold=rng.choice([0.01, 0.01, 0.05, 0.5, 2]), habit=rng.choice(["plain", "stays", "stubborn", "fails"]))


def draw(campaign, rng):
    """A run with options at random."""
    if campaign.backend != "redlock" and rng.random() < 0.25:
        return draw_once(campaign, rng)
    keys = [rng.choice(list(KEYS))]
    if keys[0] in TOGETHER and rng.random() < 0.5:
        keys = rng.sample(TOGETHER, 2)
    ttl = rng.choice([2, 2, 3, LONGEST_TTL])
    way = rng.choice(["run", "run", "while", "lease" if campaign.backend in LEASES else "run"])
    if way == "lease":
        return Run(campaign, keys, rng.choice(KEYS[keys[0]]), LONGEST_TTL, wait=rng.choice([0, 0.2, 1, 3, 6]),
                   hold=rng.choice([0.01, 0.05, 0.2]), way=way)
    return Run(campaign, keys, rng.choice(KEYS[keys[0]]), ttl, wait=rng.choice([0, 0.2, 1, 3, 6]), way=way,
               hold=rng.choice([0.01, 0.01, 0.05, 0.2, 0.5, 1, rng.uniform(0, 1.5 * ttl)]),
               # The child of the stubborn one outlives its parent, which is the end of a script.
               habit=rng.choice(["plain", "stays", "stubborn" if way == "run" else "deaf"]))


class Client(threading.Thread):
    """Runs one after the other until the campaign is over."""

    def __init__(self, campaign, rng):
        super().__init__(daemon=True)
        self.campaign, self.rng = campaign, rng

    def run(self):
        try:
            while not self.campaign.over.wait(self.rng.choice([0, 0, 0.02, 0.3])):
                draw(self.campaign, self.rng).go()
        except Exception as error:  # a thread that ends in silence would make the campaign an easy one
            self.campaign.tool_is_wrong(error)


def run_at_once(runs):
    """Starts these runs; returns the threads to be joined."""
    threads = [threading.Thread(target=run.go, daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    return threads
