#!/usr/bin/env python3
"""A campaign of faults against one backend of dlock.

Clients lock a few keys in all modes, with `dlock run` and `dlock acquire`, and do jobs with `dlock once`, while their
processes and the servers are killed, stopped and restarted at random, and `dlock force-release` breaks locks.
oracle.py, the protected command, sees each overlap and each fencing token that did not grow.  An overlap is allowed
only with a command whose lock was broken, until it has ended.  A job that was done before a `dlock once` started must
not run, and one that is said to be done must have run.  After the faults somebody must get each lock within 5 s, and no
process, lock or waiter may be left.  A broken promise is a line with OVERLAP, STALE, TWICE, NEVER DONE, NOBODY GOT IN
or LEFT BEHIND, and status 1.  125: the servers are not installed.

The seed decides what is drawn, not what happens at which instant: a failure need not come back with its seed.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import clients
import faults
import processes

BACKENDS = ["file", "redis", "redlock", "zookeeper", "mysql", "mysql-row", "mysql-version", "postgres",
            "postgres-row"]
# How many servers there can be, where there is a choice.
SERVER_COUNTS = {"redlock": [3, 4, 5], "mysql": [1, 2], "mysql-row": [1, 2], "mysql-version": [1, 2],
                 "postgres": [1, 2], "postgres-row": [1, 2]}
# A shorter campaign has no outage that outlasts all leases: it would see little else.
LONG = 30
GETS_IN_WITHIN = 5
# Locks of holders that were killed expire, and so do sessions.
FREE_WITHIN = 20
GONE_WITHIN = 5
# Statuses of dlock run that need no fault in its own processes; and those that do.
ORDINARY = {0, 75}
OF_SERVERS = {69, clients.LOST}  # 69: unreachable
OF_PROCESSES = {-signal.SIGKILL, 128 + signal.SIGKILL, 69, 70, clients.LOST}


class ServersEnded(Exception):
    """servers.sh has ended by itself; its status is the argument."""


class Servers:
    """The servers of the backend, which servers.sh starts and hurts."""

    def __init__(self, backend, count):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            ["bash", os.path.join(clients.HERE, "servers.sh"), backend, str(count)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("DLOCK_")}
        self.env |= {name: value for name, value in (line.split("=", 1) for line in self.answer()) if value}
        self.names = self.env.pop("names", "").split()

    def answer(self):
        lines = []
        while (line := self.process.stdout.readline()) != ".\n":
            if not line:
                self.close()
                raise ServersEnded(self.process.returncode)
            lines.append(line.rstrip("\n"))
        return lines

    def ask(self, *words):
        with self.lock:
            self.process.stdin.write(" ".join(words) + "\n")
            self.process.stdin.flush()
            return self.answer()

    def close(self):
        """servers.sh ends what it has started when it hears no more."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Campaign:
    """What clients, faults and the final checks share."""

    def __init__(self, backend, servers, oracle_dir, log_file, has_long_outages, is_busy):
        self.backend, self.servers, self.oracle_dir, self.log_file = backend, servers, oracle_dir, log_file
        self.has_long_outages = has_long_outages
        self.slack = 4 if is_busy else 1
        self.outage_file = os.path.join(oracle_dir, "outage")  # there is one while a long outage lasts
        self.lock = threading.Lock()
        self.calm = threading.Event()  # the faults are over
        self.over = threading.Event()  # and so are the clients
        self.aborted = False
        self.running = {}
        self.force_released = []  # runs
        self.floor = collections.Counter()  # key -> the highest fencing token of a run that has ended
        self.grants, self.statuses, self.fault_counts, self.lost = (collections.Counter() for _ in range(4))
        self.number, self.longest_wait = 0, 0.0
        self.job, self.done_at, self.succeeded, self.found_done = 0, {}, set(), set()  # of dlock once: keys
        self.lines, self.problems = [], []  # (time, text)

    def log(self, text, when=None):
        with self.lock:
            self.lines.append((when or processes.now(), text))

    def broken(self, text, when=None):
        if self.aborted:  # then all are killed
            return
        self.log(text, when)
        print(text, flush=True)
        with self.lock:
            self.problems.append((when or processes.now(), text))

    def tool_is_wrong(self, error):
        self.broken(f"the tool is wrong: {error!r}")

    def next_number(self):
        with self.lock:
            self.number += 1
            return self.number

    def present_job(self):
        return f"{clients.ONCE}{self.job}"

    def done_jobs(self):
        with self.lock:
            return sorted(self.done_at)

    def once_ended(self, run, status):
        """What was done stays done, and was done by somebody."""
        key = run.keys[0]
        with self.lock:
            done_before = self.done_at.get(key, run.begun) < run.begun
            if status == 0:
                self.done_at.setdefault(key, run.ended_at)
                (self.succeeded if run.granted_at else self.found_done).add(key)
                if key == self.present_job():
                    self.job += 1
            elif run.granted_at and run.is_out and run.tail[1] != "fails":
                self.succeeded.add(key)  # and may be remembered
        if run.granted_at and done_before:
            self.broken(f"TWICE: {run} after it was done", run.granted_at)

    def count_fault(self, what):
        with self.lock:
            self.fault_counts[what] += 1

    def dlock(self, *words):
        """Runs it to its end."""
        return subprocess.run([self.servers.env["DLOCK"], *words], env=self.servers.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              start_new_session=True)

    def locks(self):
        """What dlock list shows; raises CalledProcessError."""
        listed = self.dlock("list", "-q", "--json")
        if listed.returncode:
            self.log(f"dlock list ends with {listed.returncode}: {listed.stderr.strip()}")
        listed.check_returncode()
        return json.loads(listed.stdout)["locks"]

    def in_long_outage(self):
        return os.path.exists(self.outage_file)

    def may_overlap(self, key, when):
        """After a force-release the next command need not wait until the earlier one has ended."""
        with self.lock:
            return any(run.force_released == key and run.force_released_at <= when <= min(run.ends_until, run.ended_at)
                       for run in self.force_released)

    def ended(self, run, status, err):
        allowed = ORDINARY | (OF_SERVERS if self.servers.names else set()) | (OF_PROCESSES if run.hits else set())
        if run.force_released_at:
            allowed.add(clients.LOST)
        if run.way == "while" and clients.LOST in allowed:
            allowed |= {-signal.SIGTERM, -signal.SIGKILL}
        if run.way == "once":
            self.once_ended(run, status)
            if run.tail[1] == "fails":
                allowed = allowed | {1}
        if run.way == "lease":
            allowed = allowed | {128 + signal.SIGKILL}  # it has used up its time
        with self.lock:
            self.statuses[status] += 1
            if run.granted_at:
                self.grants[run.mode] += 1
                for key, fence in run.fences.items():
                    self.floor[key] = max(self.floor[key], fence)
                self.longest_wait = max(self.longest_wait, run.granted_at - run.begun)
                if run.is_lost():
                    self.lost[run.why_lost()] += 1
        if status not in allowed and status != 99:  # 99: the oracle has said why
            self.broken(f"status {status}: {run}, {sorted(run.hits) or 'without a fault'}: {err.strip()}")


def run_campaign(campaign, seed, seconds, client_count):
    rng = random.Random(seed)

    def stream():  # what one thread draws does not depend on what another one does
        return random.Random(rng.random())

    crowd = [clients.Client(campaign, stream()) for _ in range(client_count)]
    trouble = [faults.ProcessFaults(campaign, stream()), faults.ForceReleases(campaign, stream())]
    if campaign.servers.names:
        trouble.append(faults.ServerFaults(campaign, stream()))
    for thread in crowd + trouble:
        thread.start()
    campaign.calm.wait(seconds)
    campaign.calm.set()
    for thread in trouble:
        thread.join()

    calm_since = processes.now()
    campaign.log("the faults are over")
    campaign.over.set()
    probes = [clients.Run(campaign, [key], modes[0]) for key, modes in clients.KEYS.items()]
    for thread in crowd + clients.run_at_once(probes):
        thread.join()
    for run in probes:
        check_got_in(campaign, run, calm_since)
    again = [clients.Run(campaign, [key], "exclusive", way="once") for key in campaign.done_jobs()[-5:]]
    for thread in clients.run_at_once(again):
        thread.join()
    for key in campaign.found_done - campaign.succeeded:
        campaign.broken(f"NEVER DONE: {key}")

    # At once: the pipes of all runs have ended.
    expect_nothing(campaign, GONE_WITHIN, processes_left)
    # A server where the grant of a client that was killed has not expired clears nothing up.
    expect_nothing(campaign, FREE_WITHIN, locks_left, grants_left)
    # What a client has left that was killed goes when others wait for the lock, or after a week.
    keys = [*((key, modes[0]) for key, modes in clients.KEYS.items()),
            *((f"{clients.ONCE}{job}", "exclusive") for job in range(campaign.job + 1))]
    for some in (keys[i:i + len(clients.KEYS)] for i in range(0, len(keys), len(clients.KEYS))):
        last = [clients.Run(campaign, [key], mode, hold=0.2) for key, mode in some for _ in range(clients.SLOTS + 1)]
        for thread in clients.run_at_once(last):
            thread.join()
    expect_nothing(campaign, GONE_WITHIN, processes_left, locks_left, records_left)


def check_got_in(campaign, run, calm_since):
    """The run got its lock in time: a dead holder's lease may have to expire, and others may hold the lock."""
    if run.granted_at is None:
        campaign.broken(f"NOBODY GOT IN: {run}")
        return
    outs = [when for when, text in campaign.lines if text.endswith(f" out {run.keys[0]}") and when < run.granted_at]
    took = run.granted_at - max(outs + [calm_since + clients.LONGEST_TTL])
    if took > GETS_IN_WITHIN * campaign.slack:
        campaign.broken(f"NOBODY GOT IN for {took:.1f} s: {run}", run.granted_at)


def expect_nothing(campaign, seconds, *looks):
    # After one failure there is no patience for the rest.
    has_failed = any("LEFT BEHIND" in text for _, text in campaign.problems)
    end = processes.now() + (0 if has_failed else seconds * campaign.slack)
    while left := [what for look in looks for what in look(campaign)]:
        if processes.now() > end:
            for what in left:
                campaign.broken(f"LEFT BEHIND: {what}")
            return
        time.sleep(0.05)


def processes_left(campaign):
    return [processes.describe(pid) for pid in processes.reap_orphans({campaign.servers.process.pid})]


def locks_left(campaign):
    return [f"dlock list shows {lock}" for lock in campaign.locks()]


def grants_left(campaign):
    return campaign.servers.ask("grants")


def records_left(campaign):
    return campaign.servers.ask("left", *clients.KEYS)


def counts(counter):
    return ", ".join(f"{name} {number}" for name, number in sorted(counter.items(), key=str)) or "none"


def report(campaign, seconds):
    problems = campaign.problems
    print(f"{campaign.number} runs in {seconds:.0f} s; grants: {counts(campaign.grants)}")
    print(f"exit statuses: {counts(campaign.statuses)}")
    print(f"faults: {counts(campaign.fault_counts)}")
    print(f"leases that ended under a command: {campaign.lost.total()} ({counts(campaign.lost)})")
    print(f"jobs done once: {len(campaign.done_at)}, found done by others: {len(campaign.found_done)}")
    print(f"longest wait of a run that got its lock: {campaign.longest_wait:.1f} s")
    print(f"overlaps: {sum('OVERLAP' in text for _, text in problems)}, "
          f"stale fencing tokens: {sum('STALE' in text for _, text in problems)}")
    lines = sorted(campaign.lines)
    if campaign.log_file:
        with open(campaign.log_file, "w", encoding="utf-8") as file:
            file.writelines(f"{when:.3f} {text}\n" for when, text in lines)
    if problems:
        first = min(problems)[0]
        print("what happened before the first problem:")
        for when, text in lines:
            if first - 10 < when < first + 0.5:
                print(f"{when:.3f} {text}")
        for _, text in problems:
            print(f"FAILED: {text}")


# What mutant.sh does, and what a campaign must say of it.
MUTANTS = {"takes no lock": ["OVERLAP"], "remembers nothing": ["TWICE"], "repeats a token": ["STALE"], "locks up": ["NOBODY GOT IN"],
           "leaves a holder": ["LEFT BEHIND: process", "LEFT BEHIND: dlock list"]}


def self_test():
    """A campaign finds what it is there for.  Returns the exit status."""
    real = os.environ.get("DLOCK", os.path.join(clients.HERE, "..", "..", "build", "default", "src", "dlock"))
    for mutant, words in MUTANTS.items():
        env = os.environ | {"DLOCK": os.path.join(clients.HERE, "mutant.sh"), "REAL_DLOCK": os.path.realpath(real),
                            "MUTANT": mutant}
        done = subprocess.run([sys.executable, __file__, "file", "--seconds", "1"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        missing = [word for word in words if word not in done.stdout]
        if missing or done.returncode != 1:
            print(f"a dlock that {mutant}: status {done.returncode}, not found: {missing}\n{done.stdout}")
            return 1
        print(f"a dlock that {mutant}: found")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", choices=BACKENDS, nargs="?")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    parser.add_argument("--seconds", type=float, default=60, help="how long there are faults (default: 60)")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--servers", type=int, help="redlock: 3, 4 or 5 (default: 3 or 5, by the seed); "
                        "MySQL: 2 are a primary and a standby (default: 1)")
    parser.add_argument("--busy", action="store_true", help="other tests run beside it: what has to come within some "
                        "seconds has four times as long")
    parser.add_argument("--log", help="write all that happened to this file")
    parser.add_argument("--self-test", action="store_true", help="see that a faulty dlock is found out")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not options.backend:
        parser.error("which backend?")
    choice = SERVER_COUNTS.get(options.backend, [])
    count = options.servers
    if count is None:
        count = random.Random(options.seed).choice([3, 5]) if options.backend == "redlock" else 1
    elif not choice:
        parser.error("argument --servers: only for redlock and MySQL")
    elif count not in choice:
        parser.error(f"argument --servers: {options.backend} takes {' or '.join(map(str, choice))}")
    print(f"campaign.py {options.backend}{f' --servers {count}' if choice else ''} --seed {options.seed} "
          f"--seconds {options.seconds:g} --clients {options.clients}", flush=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and the like ignore it
    processes.adopt_orphans()
    try:
        servers = Servers(options.backend, count)
    except ServersEnded as ended:
        return ended.args[0] or 1
    begun = processes.now()
    campaign = None
    try:
        with tempfile.TemporaryDirectory(dir=servers.env["TMPDIR"]) as oracle_dir:
            campaign = Campaign(options.backend, servers, oracle_dir, options.log, options.seconds >= LONG,
                                options.busy)
            run_campaign(campaign, options.seed, options.seconds, options.clients)
    except KeyboardInterrupt:
        print("interrupted")
        return 128 + signal.SIGINT
    finally:
        if campaign:
            campaign.aborted = True
            campaign.calm.set()
            campaign.over.set()
        processes.kill_all({servers.process.pid})
        servers.close()
    report(campaign, processes.now() - begun)
    return 1 if campaign.problems else 0


if __name__ == "__main__":
    sys.exit(main())
