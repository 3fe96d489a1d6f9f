"""The clients of a campaign: each runs one `dlock run` after the other, with options that it draws."""
import math
import os
import subprocess
import sys
import threading

import processes

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "oracle.py")
FORBID = os.path.join(HERE, "..", "cli", "forbid.py")
SLOTS = 2
# Which modes a key has.  Slots cannot be mixed with the others.
KEYS = {"solo": ["exclusive"], "pair": ["exclusive"], "both": ["exclusive", "shared", "shared"], "slots": ["slots"]}
# Some runs take both.
TOGETHER = ["solo", "pair"]
MODES = {"exclusive": [], "shared": ["--shared"], "slots": ["--slots", str(SLOTS)]}
LONGEST_TTL = 4
# Longer than any wait, hold and stop of a run together.
HANGS_AFTER = 120


class Run:
    """One `dlock run`, from its start until all its processes have ended."""

    def __init__(self, campaign, keys, mode, ttl=2, wait=30, hold=0.01, habit="plain", from_afar=False):
        self.campaign, self.keys, self.mode, self.ttl, self.wait = campaign, keys, mode, ttl, wait
        self.number = campaign.next_number()
        self.command = [sys.executable, FORBID, "socket:1", "EPERM"] if from_afar else []
        self.command += [
            campaign.servers.env["DLOCK"], "run", "-q", *(f"--key={key}" for key in keys), *MODES[mode], "--ttl", f"{ttl}s",
            *(["-w", str(wait)] if wait else ["-n"]), "--connect-timeout", "2s",
            "--", sys.executable, "-I", "-S", ORACLE, campaign.oracle_dir, ",".join(keys), mode, str(SLOTS)]
        self.tail = [f"{hold:.3f}", habit]
        self.hits = set()     # (what, role) of the faults that its processes have had
        self.stopped = set()  # roles that are stopped now
        self.granted_at, self.fences = None, {}
        self.ended_at, self.over = math.inf, threading.Event()
        # The key, when a force-release of its lock began, and when its command must have ended after that.
        self.force_released = self.force_released_at = self.ends_until = None

    def __str__(self):
        return (f"run {self.number} ({' '.join(self.keys)}, {self.mode}, ttl {self.ttl}, wait {self.wait}, "
                f"hold {' '.join(self.tail)})")

    def go(self):
        """Runs it to its end and tells the campaign what it saw."""
        campaign = self.campaign
        with campaign.lock:
            floors = ",".join(str(campaign.floor[key]) for key in self.keys)
        self.begun = processes.now()
        # A session of its own: Ctrl-C is for the campaign, which then ends them all.
        self.process = subprocess.Popen(
            self.command + [floors] + self.tail, env=campaign.servers.env, stdin=subprocess.DEVNULL,
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
            if word == "in":
                key, _, fence, _ = rest.split()
                self.granted_at, self.fences[key] = float(time), int(fence)

    def why_lost(self):
        if self.force_released_at:
            return "force-release"
        # The supervisor renews the lease; the other processes do not matter to it.
        return "processes" if any(role == "supervisor" for _, role in self.hits) else "servers"

    def tree(self):
        """Its processes now, as (role, pid, parent)."""
        front = self.process.pid
        found = [("front", front, os.getpid())]
        for supervisor in processes.children(front)[:1]:
            found.append(("supervisor", supervisor, front))
            for command in processes.children(supervisor)[:1]:
                found.append(("command", command, supervisor))
                found += [("grandchild", pid, command) for pid in processes.children(command)[:1]]
        return found

    def describe(self):
        return "; ".join(processes.describe(pid) for _, pid, _ in self.tree())


def draw(campaign, rng):
    """A run with options at random."""
    keys = [rng.choice(list(KEYS))]
    if keys[0] in TOGETHER and rng.random() < 0.5:
        keys = rng.sample(TOGETHER, 2)
    ttl = rng.choice([2, 2, 3, LONGEST_TTL])
    return Run(campaign, keys, rng.choice(KEYS[keys[0]]), ttl, wait=rng.choice([0, 0.2, 1, 3, 6]),
               hold=rng.choice([0.01, 0.01, 0.05, 0.2, 0.5, 1, rng.uniform(0, 1.5 * ttl)]),
               habit=rng.choice(["plain", "stays", "stubborn"]),
               # Where it is not forbidden, mysql-row sees that the processes of a dead holder on this machine are gone.
               from_afar=campaign.backend == "mysql-row" and rng.random() < 0.5)


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
