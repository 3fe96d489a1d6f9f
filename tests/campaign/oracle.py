"""oracle.py DIRECTORY KEY MODE SLOTS FLOOR HOLD HABIT: the protected command of a campaign.

It needs no clock to see an overlap: it takes a flock(2) on a local file and keeps it until it dies.  If the kernel
refuses that lock, another command that the mode forbids is alive.  The kernel frees the lock exactly at death.

A fencing token must be above FLOOR, the highest one of the commands that had ended before this dlock was started.
Below an exclusive lock it must also be above the last one that was seen, which the lock file contains.

HABIT "stays" and "stubborn": the command lasts for HOLD, and for as long as the directory has a file "outage".
HABIT "stubborn": the command and a child of it in another session ignore SIGTERM, and both have the kernel lock.

Prints a line when it begins and one when it ends, and one for a broken promise.
"""
import fcntl
import os
import signal
import sys
import time

directory, key, mode, slots, floor, hold, habit = sys.argv[1:]


def say(text):
    os.write(1, f"{time.clock_gettime(time.CLOCK_BOOTTIME):.3f} {text}\n".encode())


def kernel_lock(name, how):
    """The descriptor that has the lock; None if the kernel refuses it."""
    fd = os.open(f"{directory}/{name}", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
        return fd
    except BlockingIOError:
        os.close(fd)
        return None


def kernel_slot():
    # A scan can be unlucky: while it goes from file to file, a holder ends and another one begins at a file
    # behind it.  Three scans in a row cannot.
    for _ in range(3):
        for slot in range(int(slots)):
            fd = kernel_lock(f"{key}.{slot}", fcntl.LOCK_EX)
            if fd is not None:
                return fd
    return None


if mode == "slots":
    lock = kernel_slot()
else:
    lock = kernel_lock(key, fcntl.LOCK_SH if mode == "shared" else fcntl.LOCK_EX)
if lock is None:
    say(f"OVERLAP on {key}: {mode}, fence {os.environ.get('DLOCK_FENCE')}")
    sys.exit(99)

fence = int(os.environ.get("DLOCK_FENCE", "0"))
last = int(floor)
if mode == "exclusive":
    last = max(last, int(os.pread(lock, 20, 0) or 0))
    os.pwrite(lock, f"{fence:020}".encode(), 0)
if fence <= last:
    say(f"STALE on {key}: {mode} with fence {fence} after {last}")
    sys.exit(99)


def stay():
    time.sleep(float(hold))
    while habit != "plain" and os.path.exists(f"{directory}/outage"):
        time.sleep(0.05)


say(f"in {key} {mode} {fence} {os.getpid()}")
if habit == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setsid()
        stay()
        os._exit(0)
    os.waitpid(child, 0)
else:
    stay()
say(f"out {key}")
