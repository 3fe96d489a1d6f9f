"""The faults of a campaign.  One thread hits the processes of the clients, one the servers, and one breaks locks.

What dlock does not promise is left out: that both its processes are killed at one instant, or that both are stopped
while the command runs.  Until the command has started both may be stopped, for any time.
"""
import math
import os
import signal
import subprocess
import threading

import clients
import processes


class Faults(threading.Thread):
    """Hits something now and then until the faults are over; then undoes what it did."""

    def __init__(self, campaign, rng, pause):
        super().__init__(daemon=True)
        self.campaign, self.rng, self.pause = campaign, rng, pause

    def run(self):
        try:
            while not self.campaign.calm.wait(self.rng.expovariate(1 / self.pause)):
                self.hit()
        except Exception as error:
            self.campaign.tool_is_wrong(error)
        finally:
            self.undo()

    def undo(self):
        """Nothing: what this one does needs no end."""

    def count(self, what):
        self.campaign.count_fault(what)

    def lasts(self, longest):
        """Mostly short, sometimes long."""
        return 0.1 + (longest - 0.1) * self.rng.random() ** 3


class ProcessFaults(Faults):
    def __init__(self, campaign, rng):
        super().__init__(campaign, rng, 0.4)
        self.stopped = []  # (when it goes on, run, role, handle)

    def hit(self):
        self.resume(processes.now())
        if self.campaign.in_long_outage() and self.rng.random() < 0.7:
            return  # some leases are to end by the outage alone
        with self.campaign.lock:
            runs = list(self.campaign.running.values())
        if not runs:
            return
        # Those whose command runs are fewer than those that wait.
        run, tree = max(((run, run.tree()) for run in self.rng.choices(runs, k=2)), key=lambda pair: len(pair[1]))
        if not tree:
            return
        role, pid, parent = self.rng.choice(tree)
        try:
            handle = processes.Handle(pid, parent)
        except (ProcessLookupError, OSError):
            return  # it has ended meanwhile
        if self.rng.random() < 0.4:
            self.kill(run, role, handle)
        else:
            self.stop(run, role, handle)

    def kill(self, run, role, handle):
        of_dlock = ("launcher", "supervisor")
        if role not in of_dlock or not any(("kill", other) in run.hits for other in of_dlock):
            run.hits.add(("kill", role))
            self.campaign.log(f"run {run.number}: kill -9 of the {role} {handle.pid}")
            if handle.send(signal.SIGKILL):
                self.count(f"kill {role}")
        handle.close()

    def stop(self, run, role, handle):
        if role in run.stopped:
            handle.close()
            return
        other = {"launcher": "supervisor", "supervisor": "launcher"}.get(role)
        if other in run.stopped and (other == "launcher" or len(run.tree()) > 2):
            # The command may have started, or the supervisor may be about to start it.
            handle.close()
            return
        run.hits.add(("stop", role))
        run.stopped.add(role)
        seconds = self.lasts(8)
        self.campaign.log(f"run {run.number}: stop of the {role} {handle.pid} for {seconds:.1f} s")
        handle.stop()
        self.count("stop waiter" if other in run.stopped else f"stop {role}")
        self.stopped.append((processes.now() + seconds, run, role, handle))

    def resume(self, until):
        for entry in [entry for entry in self.stopped if entry[0] <= until]:
            self.stopped.remove(entry)
            _, run, role, handle = entry
            handle.send(signal.SIGCONT)
            run.stopped.discard(role)
            handle.close()

    def undo(self):
        self.resume(float("inf"))


class ForceReleases(Faults):
    """Takes the lock from a run, one run at a time."""

    def __init__(self, campaign, rng):
        super().__init__(campaign, rng, 2)

    def hit(self):
        try:
            holders = [(lock["key"], holder) for lock in self.campaign.locks() for holder in lock["holders"]]
        except subprocess.CalledProcessError:
            return  # the servers are down
        with self.campaign.lock:
            runs = {run.process.pid: run for run in self.campaign.running.values()}
        # A holder of a file is seen before its record, and has no id until then.
        holders = [(key, holder) for key, holder in holders if holder["pid"] in runs and holder["id"]]
        if not holders:
            return
        key, holder = self.rng.choice(holders)
        run = runs[holder["pid"]]
        run.force_released, run.force_released_at, run.ends_until = key, processes.now(), math.inf
        with self.campaign.lock:
            self.campaign.force_released.append(run)
        # A force-release without a reply may have succeeded.  Repeat it until the grant is known to be gone.
        while True:
            done = self.campaign.dlock("force-release", "--yes", "--id", holder["id"], "--connect-timeout", "2s", key)
            self.campaign.log(f"run {run.number}: force-release of {key} ends with {done.returncode}; "
                              f"{done.stderr.strip()}")
            if done.returncode in (0, 1) or self.campaign.aborted:
                break
            self.campaign.calm.wait(0.2)
        self.count("force-release" if done.returncode == 0 else "force-release of a free lock")
        # If the holder does not hear of it because of an outage, its command ends with the lease.
        run.ends_until = processes.now() + clients.LONGEST_TTL + 1
        must_end = done.returncode == 0 and run.has_command()
        if not run.over.wait(clients.LONGEST_TTL + 1) and must_end and not run.hits:
            self.campaign.broken(f"LEFT BEHIND: {run} goes on, but its lock was broken: {run.describe()}")


class ServerFaults(Faults):
    def __init__(self, campaign, rng):
        super().__init__(campaign, rng, 0.8)
        self.servers = campaign.servers
        self.has_leader = campaign.backend == "zookeeper"
        self.has_standby = campaign.backend.startswith(("mysql", "postgres")) and len(self.servers.names) == 2
        self.down, self.back = [], None  # names, and what brings them back

    def hit(self):
        names = self.servers.names
        if self.has_standby and self.rng.random() < 0.4:
            self.fail_over()
            return
        if self.campaign.has_long_outages and self.rng.random() < 0.2:
            self.outlast_leases()
            return
        # A majority is always well.
        victims, of_what = self.rng.sample(names, self.rng.randint(1, max(1, (len(names) - 1) // 2))), "server"
        if self.has_leader and self.rng.random() < 0.5 and (leader := self.servers.ask("leader")):
            victims, of_what = leader, "leader"
        kind = self.rng.choice(["kill", "stop", "restart"])
        what, back, seconds = {"kill": ("kill", "restart", self.lasts(4)), "stop": ("pause", "resume", self.lasts(5)),
                               "restart": ("kill", "restart", 0)}[kind]
        self.take_down(victims, of_what, kind, what, back, seconds)

    def outlast_leases(self):
        """An outage that lasts longer than any lease."""
        names = self.servers.names
        victims = self.servers.ask("leader") if self.has_standby else self.rng.sample(names, len(names) // 2 + 1)
        kind, what, back = self.rng.choice([("kill", "kill", "restart"), ("stop", "pause", "resume")])
        self.take_down(victims, "server", f"long {kind}", what, back, self.begin_long_outage())

    def begin_long_outage(self):
        """Until undo().  Commands acquire the locks that stay for so long.  Returns how many seconds it is to last."""
        with open(self.campaign.outage_file, "w", encoding="ascii"):
            pass
        self.campaign.calm.wait(1.5)
        return clients.LONGEST_TTL + self.rng.uniform(1, 3)

    def take_down(self, victims, of_what, kind, what, back, seconds):
        self.campaign.log(f"{kind} of {of_what} {' '.join(victims)} for {seconds:.1f} s")
        self.down, self.back = victims, back
        for name in victims:
            self.servers.ask(what, name)
            self.count(f"{kind} {of_what}")
        self.campaign.calm.wait(seconds)
        self.undo()
        self.campaign.log(f"{' '.join(victims)} serves again")

    def fail_over(self):
        [primary] = self.servers.ask("leader")
        how = self.rng.choice(["dead", "planned", "cut_off"])
        self.campaign.log(f"failover, the primary {primary} is {how}")
        if how == "dead":
            self.servers.ask("kill", primary)
            self.campaign.calm.wait(self.lasts(3))
        # One that goes on to answer is to mislead whoever outlasts the leases.
        is_long = how != "dead" and self.campaign.has_long_outages
        seconds = self.begin_long_outage() if is_long else self.lasts(3)
        self.servers.ask("fail_over", how, f"{seconds:.1f}")
        self.undo()
        self.count(f"failover ({how})")
        self.campaign.log("failover is done")

    def undo(self):
        if self.campaign.aborted:
            return
        if self.down:
            self.servers.ask(self.back, *self.down)
            self.down = []
        if self.campaign.in_long_outage():
            os.remove(self.campaign.outage_file)
