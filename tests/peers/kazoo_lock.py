# A lock of kazoo, driven by the lines of its standard input.
#   acquire   says "asking", and "held" when it has the lock
#   release   says "released"
# Arguments: servers, path of the lock, "lock", "read" or "write", and what else it waits for.
import sys

from kazoo.client import KazooClient

servers, path, kind, *patterns = sys.argv[1:]
client = KazooClient(hosts=servers, timeout=30)
client.start()
make = {"lock": client.Lock, "read": client.ReadLock, "write": client.WriteLock}[kind]
lock = make(path, "kazoo", extra_lock_patterns=patterns) if patterns else make(path, "kazoo")
for line in sys.stdin:
    if line == "acquire\n":
        print("asking", flush=True)
        lock.acquire()
        print("held", flush=True)
    else:
        lock.release()
        print("released", flush=True)
client.stop()
