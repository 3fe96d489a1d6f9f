"""Processes: who descends from whom, and signals that reach only the process that was meant."""
import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36


def now():
    """The clock of dlock's own deadlines."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def adopt_orphans():
    """From now on a descendant whose parent dies becomes a child of this process: none can escape."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def children(pid):
    """The children of a process, oldest first."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:  # it has ended meanwhile
        pass
    return sorted(found)


def state(pid):
    """The letter that ps shows: T is stopped, Z a zombie; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1]
    except OSError:
        return ""


def title(pid):
    """Its command line; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\0").replace("\0", " ")
    except OSError:
        return ""


def describe(pid):
    return f"process {pid} ({state(pid)}) {title(pid)[:150]}"


class Handle:
    """One process, by a pidfd: its number may be given to another one, the descriptor is not."""

    def __init__(self, pid, parent):
        self.pid = pid
        self.fd = os.pidfd_open(pid)
        if pid not in children(parent):
            self.close()
            raise ProcessLookupError(f"{pid} is no child of {parent} any more")

    def send(self, number):
        try:
            signal.pidfd_send_signal(self.fd, number)
            return True
        except ProcessLookupError:
            return False

    def stop(self):
        """When this has returned the process does nothing any more."""
        self.send(signal.SIGSTOP)
        end = now() + 2
        while state(self.pid) not in ("T", "t", "Z", "X", "") and now() < end:
            time.sleep(0.001)

    def close(self):
        os.close(self.fd)


def reap_orphans(but):
    """Our children that live, except those in `but`; the zombies among them are reaped."""
    left = []
    for pid in children(os.getpid()):
        if pid in but:
            continue
        try:
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                left.append(pid)
        except ChildProcessError:
            pass
    return left


def kill_all(but):
    """Ends all descendants except the children in `but`, whatever they do against it."""
    def below(pid):
        return [pid] + [other for child in children(pid) for other in below(child)]

    while left := reap_orphans(but):
        for pid in left:
            for victim in below(pid):
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        time.sleep(0.01)
