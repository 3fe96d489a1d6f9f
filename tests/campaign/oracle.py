"""oracle.py DIRECTORY KEYS MODE SLOTS FLOORS HOLD HABIT: the protected command of a campaign.

It needs no clock to see an overlap: of each key, or of its number of a slots lock, it takes a flock(2) on a local file
and keeps it until it dies.  If the kernel refuses that lock, another command that the mode forbids is alive.  The
kernel frees the lock exactly at death.

A fencing token must be above the FLOOR of its key, the highest one of the commands that had ended before this dlock
was started.  Below an exclusive lock it must also be above the last one that was seen, which the lock file contains.

HABIT "deaf": the command ignores SIGTERM.  HABIT "fails": its status is 1.
HABIT "stays", "deaf" and "stubborn": the command lasts for HOLD, and for as long as the directory has a file "outage".
HABIT "stubborn": the command and a child of it in another session ignore SIGTERM, and both have the kernel lock.

Prints a line when it begins and one when it ends, and one for a broken promise.
"""
import fcntl
import os
import signal
import sys
import time

directory, keys, mode, slots, floors, hold, habit = sys.argv[1:]
keys, floors = keys.split(","), floors.split(",")


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


def of_slot():
    """Two holders with one number are an overlap, and so is a number that is too large."""
    slot = int(os.environ.get("DLOCK_SLOT", "0"))
    return kernel_lock(f"{keys[0]}.{slot}", fcntl.LOCK_EX) if 1 <= slot <= int(slots) else None


fences = os.environ.get("DLOCK_FENCES", "0").split("\n")
for key, floor, fence in zip(keys, floors, map(int, fences), strict=True):
    if mode == "slots":
        lock = of_slot()
    else:
        lock = kernel_lock(key, fcntl.LOCK_SH if mode == "shared" else fcntl.LOCK_EX)
    if lock is None:
        say(f"OVERLAP {key} {mode}, fence {fence}, slot {os.environ.get('DLOCK_SLOT')}")
        sys.exit(99)
    last = int(floor)
    if mode == "exclusive":
        last = max(last, int(os.pread(lock, 20, 0) or 0))
        os.pwrite(lock, f"{fence:020}".encode(), 0)
    if fence <= last:
        say(f"STALE {key} {mode} with fence {fence} after {last}")
        sys.exit(99)


def stay():
    time.sleep(float(hold))
    while habit not in ("plain", "fails") and os.path.exists(f"{directory}/outage"):
        time.sleep(0.05)


for key, fence in zip(keys, fences):
    say(f"in {key} {mode} {fence} {os.getpid()}")
if habit in ("deaf", "stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if habit == "stubborn":
    child = os.fork()
    if child == 0:
        os.setsid()
        stay()
        os._exit(0)
    os.waitpid(child, 0)
else:
    stay()
for key in keys:
    say(f"out {key}")
sys.exit(1 if habit == "fails" else 0)
