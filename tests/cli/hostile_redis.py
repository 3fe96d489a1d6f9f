#!/usr/bin/env python3
"""Redis servers that lie: a proxy in front of a real one, whose replies it damages.

    hostile_redis.py DLOCK REDIS_PORT RUNS SEED

Runs dlock (run, list, show, force-release; redis and redlock) RUNS times against them.  Each run must
end within its time limit with a status that dlock(1) has for this case, and say nothing of an
internal error.  What is done to the replies follows from the seed and the number of the run, as far as
the order allows in which they come:

    hostile_redis.py DLOCK REDIS_PORT 1 SEED FIRST     run number FIRST once more
"""
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

DLOCK, REDIS_PORT, RUNS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
FIRST = int(sys.argv[5]) if len(sys.argv) > 5 else 0
TIME_LIMIT = float(os.environ.get("HOSTILE_LIMIT", "25"))

FRAGMENTS = [
    b"+OK\r\n", b":0\r\n", b":1\r\n", b":-1\r\n", b":9223372036854775807\r\n", b":-9223372036854775808\r\n",
    b"$-1\r\n", b"*-1\r\n", b"*0\r\n", b"$0\r\n\r\n", b"$3\r\nzzz\r\n", b"*2\r\n:1\r\n:1\r\n",
    b"-ERR no\r\n", b"-NOSCRIPT no\r\n", b"-NOAUTH no\r\n", b"-NOPERM no\r\n", b"-READONLY no\r\n",
    b"-LOADING wait\r\n", b"-BUSY wait\r\n", b"-MOVED 1 h:1\r\n", b"-OOM no\r\n", b"-MASTERDOWN no\r\n",
    b"*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$2\r\ngo\r\n",
    b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$9\r\ndlock:job\r\n",
    b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n",
    b"*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$11\r\nlook 500000\r\n", b"*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$7\r\nends -5\r\n",
    b"*2\r\n:1\r\n:7\r\n", b"*7\r\n:0\r\n$4\r\nheld\r\n:-1\r\n$1\r\n1\r\n:99999999999\r\n$0\r\n\r\n$0\r\n\r\n",
    b"*7\r\n:0\r\n$4\r\nturn\r\n:0\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n", b"*3\r\n:0\r\n$4\r\nmode\r\n$2\r\nn0\r\n",
    b"*3\r\n:0\r\n$4\r\ntwin\r\n:-77\r\n", b"*3\r\n:0\r\n$9\r\novertaken\r\n$20\r\n18446744073709551615\r\n",
    b"*5\r\n$6\r\nstring\r\n:-1\r\n$0\r\n\r\n*1\r\n*3\r\n$0\r\n\r\n:-1\r\n$2\r\n{}\r\n*0\r\n",
    b"*5\r\n$4\r\nhash\r\n:5\r\n$4\r\nread\r\n*1\r\n*3\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n*1\r\n*3\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n",
    b"*5\r\n$4\r\nzset\r\n:5\r\n$0\r\n\r\n*1\r\n*3\r\n$9\r\n__write__\r\n:-1\r\n$0\r\n\r\n*0\r\n",
    b"*5\r\n$4\r\nzset\r\n:5\r\n$0\r\n\r\n*0\r\n*0\r\n", b"*5\r\n$4\r\nhash\r\n:5\r\n$0\r\n\r\n*0\r\n*0\r\n",
    b"*5\r\n$6\r\nstring\r\n:5\r\n$0\r\n\r\n*1\r\n*3\r\n$6\r\nADDED:\r\n:5\r\n$0\r\n\r\n*0\r\n",
    b"*5\r\n$6\r\nstring\r\n:5\r\n$0\r\n\r\n*1\r\n*3\r\n$7\r\nADDED:@\r\n:5\r\n$0\r\n\r\n*0\r\n",
    b"*2\r\n$1\r\n0\r\n*3\r\n$6\r\ndlock:\r\n$9\r\ndlock:job\r\n$5\r\ndlock\r\n", b"*2\r\n$1\r\n0\r\n*1\r\n$0\r\n\r\n",
    b"*2\r\n$1\r\n0\r\n*3\r\n$8\r\n{}:queue\r\n$1\r\n{\r\n$17\r\n{dlock:job}:queue\r\n", b"*2\r\n$2\r\n17\r\n*0\r\n",
    b"%1\r\n+a\r\n:1\r\n", b"_\r\n", b"#t\r\n", b",3.1\r\n", b">2\r\n+a\r\n+b\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"*1000000000\r\n", b"$1000000000\r\n", b"*2\r\n" * 60, b"\x15\x03\x01\x00\x02\x02\x16", b"\0" * 50, b"",
]
WORDS = [b"string", b"hash", b"zset", b"none", b"list", b"held", b"turn", b"mode", b"twin", b"s", b"n3", b"x", b"go",
         b"look 500", b"ends 0", b"{\"id\":\"a\"}", b"ADDED:@", b"", b"@", b"}:queue", b"message", b"\xff\xfe", b"-1"]


def damaged(data, rnd, seen):
    """What the client gets in place of `data`; None: nothing more, and the connection ends."""
    how = rnd.randrange(12)
    if how == 0:
        return rnd.choice(FRAGMENTS)
    if how == 1:
        return data + rnd.choice(FRAGMENTS)
    if how == 2:
        return rnd.choice(FRAGMENTS) + data
    if how == 3:
        return data[:rnd.randrange(len(data) + 1)]
    if how == 4 and data:
        out = bytearray(data)
        for _ in range(rnd.randrange(1, 4)):
            out[rnd.randrange(len(out))] ^= 1 << rnd.randrange(8)
        return bytes(out)
    if how == 5:
        return data + data
    if how == 6 and seen:
        return rnd.choice(seen)
    if how == 7 and seen:
        one, two = rnd.choice(seen), rnd.choice(seen)
        return one[:rnd.randrange(len(one) + 1)] + two[rnd.randrange(len(two) + 1):]
    if how == 8:  # another number, of the same shape
        at = [i for i, c in enumerate(data) if c == ord(":")]
        if at:
            i = rnd.choice(at)
            j = data.find(b"\r\n", i)
            if j > 0:
                number = rnd.choice([b"0", b"-1", b"1", b"-2", b"86400001", b"9223372036854775807", b"x"])
                return data[:i + 1] + number + data[j:]
    if how == 9:  # another text, of the same shape
        at = [i for i in range(len(data)) if data[i:i + 1] == b"$" and data[i + 1:i + 2].isdigit()]
        if at:
            i = rnd.choice(at)
            j = data.find(b"\r\n", i)
            length = int(data[i + 1:j]) if data[i + 1:j].isdigit() else 0
            text = rnd.choice(WORDS)
            return data[:i] + b"$%d\r\n%s\r\n" % (len(text), text) + data[j + 2 + length + 2:]
    if how == 10:
        return None
    return data


class Hostile(threading.Thread):
    """One server of one run."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.rnd = random.Random(seed)
        self.rate = self.rnd.choice([0.05, 0.2, 0.5, 1.0])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.seen = []
        self.stopping = False

    def run(self):
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ, None)
        while not self.stopping:
            for key, _ in selector.select(0.1):
                if key.data is None:
                    self.accept(selector)
                    continue
                try:
                    data = key.fileobj.recv(65536)
                except OSError:
                    data = b""
                to_client, other = key.data
                if data and to_client:
                    self.seen = (self.seen + [data])[-20:]
                    if self.rnd.random() < self.rate:
                        data = damaged(data, self.rnd, self.seen)
                try:
                    if data:
                        other.setblocking(True)
                        other.settimeout(2)
                        other.sendall(data)
                        other.setblocking(False)
                except OSError:
                    data = None
                if not data and data != b"" or (data == b"" and not to_client):
                    for one in (key.fileobj, other):
                        try:
                            selector.unregister(one)
                        except (KeyError, ValueError):
                            pass
                        one.close()
        for key in list(selector.get_map().values()):
            key.fileobj.close()

    def accept(self, selector):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", REDIS_PORT))
        for one in (client, server):
            one.setblocking(False)
        selector.register(client, selectors.EVENT_READ, (False, server))
        selector.register(server, selectors.EVENT_READ, (True, client))
        if self.rnd.random() < self.rate / 10:
            client.sendall(self.rnd.choice(FRAGMENTS))


def redis(*words):
    return subprocess.run(["redis-cli", "-p", str(REDIS_PORT), *words], capture_output=True, check=True, text=True)


def prepare(rnd, key):
    """What stands on the real server."""
    kind = rnd.randrange(6)
    lock = "dlock:" + key
    if kind == 1:
        redis("set", lock, rnd.choice(["other", "ADDED:2026-01-01T00:00:00Z@h", "ADDED:@", "ab" * 16]), "px", "3000")
    elif kind == 2:
        redis("hset", lock, "8-4-4-4-12:1", "1", "mode", "read")
    elif kind == 3:
        redis("zadd", lock, "99", "a", "9" * 15, "__write__")
    elif kind == 4:
        redis("set", lock, "f" * 32, "px", "3000")
        redis("set", "{%s}:owner" % lock, '{"id":"%s","host":"h","pid":1,"mode":"exclusive","slots":1}' % ("f" * 32), "px", "3000")
        redis("zadd", "{%s}:queue" % lock, "1", "x:" + "e" * 32)
        redis("set", "{%s}:waiter:%s" % (lock, "e" * 32), "{}", "px", "3000")


def one(number, directory):
    rnd = random.Random(f"{SEED}/{number}")
    key = f"job{number}"
    prepare(rnd, key)
    servers = [Hostile(f"{SEED}/{number}/{i}") for i in range(rnd.choice([1, 1, 3]))]
    for server in servers:
        server.start()
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    backend = ("redis://" if len(servers) == 1 else "redlock://") + hosts
    mode = rnd.choice([[], [], ["--shared"], ["--slots", "2"]])
    which = rnd.randrange(5)
    common = ["-b", backend, "--connect-timeout", "500ms"]
    if rnd.random() < 0.3:
        common.append("-vv")
    if which <= 1:
        command = ["run", *common, "-k", key, "-w", "1s", "--ttl", "2s", *mode, "--",
                   *(["true"] if rnd.random() < 0.5 else ["sleep", "1.5"])]
        fine = {0, 64, 69, 75, 77, 79}
    elif which == 2:
        command = ["list", *common, *rnd.choice([[], ["--json"]])]
        fine = {0, 64, 69, 77}
    elif which == 3:
        command = ["show", *common, *rnd.choice([[], ["--json"]]), key]
        fine = {0, 1, 64, 69, 77}
    else:
        command = ["force-release", *common, "--yes", "--reason", "a test", key]
        fine = {0, 1, 64, 69, 75, 77}
    out = os.path.join(directory, f"out{number}")
    with open(out, "wb") as file:
        process = subprocess.Popen([DLOCK, *command], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                   start_new_session=True)
        begun = time.monotonic()
        try:
            status = process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            status = "none within %g s" % TIME_LIMIT
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    took = time.monotonic() - begun
    for server in servers:
        server.stopping = True
        server.listener.close()
    with open(out, "rb") as file:
        said = file.read()
    os.unlink(out)
    if status not in fine or b"internal error" in said:
        return f"run {number}: status {status}: dlock {' '.join(command)}\n{said[-2000:].decode(errors='replace')}"
    return took, status


def main():
    print(f"seed {SEED}", flush=True)
    failures, lock, numbers = [], threading.Lock(), iter(range(FIRST, FIRST + RUNS))
    longest, statuses = [0.0], {}

    def work(directory):
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or len(failures) > 5:
                return
            result = one(number, directory)
            with lock:
                if isinstance(result, str):
                    failures.append(result)
                else:
                    longest[0] = max(longest[0], result[0])
                    statuses[result[1]] = statuses.get(result[1], 0) + 1

    with tempfile.TemporaryDirectory() as directory:
        threads = [threading.Thread(target=work, args=(directory,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(f"{RUNS} runs, {longest[0]:.1f} s the longest, by status: {dict(sorted(statuses.items()))}")
    if failures:
        sys.exit("\n".join(failures))


main()
