#!/usr/bin/env bash
# ctest: cost 20
# A lock of redis-py and one of dlock on the same name exclude each other, and a dlock that waits for
# one of redis-py gets it within a second of its release or end; until then the first that waits asks
# twice a second, and the others every three seconds.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import redis' 2>/dev/null; then python=$candidate; fi
done
[[ $python ]] || skip "redis-py is not installed"

start_redis a
"$python" - "$DLOCK" "$tmp" "${redis_port[a]}" <<'PYTHON'
import os, subprocess, sys, time
import redis

dlock, tmp, port = sys.argv[1:]
server = redis.Redis(port=int(port), decode_responses=True)
run = [dlock, "run", "--backend", f"redis://127.0.0.1:{port}", "--prefix", "", "--key", "job"]

def expect(condition, sentence):
    if not condition:
        sys.exit(sentence)

def wait_for(condition, what):
    end = time.monotonic() + 30
    while not condition():
        expect(time.monotonic() < end, f"not within 30 s: {what}")
        time.sleep(0.002)

def waiter():
    """A dlock that waits, whose command prints when it was started."""
    process = subprocess.Popen(run + ["--", "date", "+%s.%N"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: server.zcard("{job}:queue") == 1, "dlock waits")
    return process

def started(process):
    out, err = process.communicate(timeout=60)
    expect(process.returncode == 0, f"status {process.returncode}: {err}")
    return float(out), err

for shape in ("release", "expiry"):
    worst = 0
    for _ in range(5):
        lock = server.lock("job", timeout=20 if shape == "release" else 1.5)
        expect(lock.acquire(blocking=False), "redis-py does not get a free lock")
        process = waiter()
        time.sleep(0.6)  # it speaks after 0.4 s
        if shape == "release":
            freed = time.time()
            lock.release()
        else:
            freed = time.time() + server.pttl("job") / 1000
        at, err = started(process)
        expect('\ndlock: held by redis-py' in err, f"not named as redis-py: {err}")
        expect(at > freed - 0.002, f"dlock did not wait for redis-py: {at - freed:.3f} s")
        worst = max(worst, at - freed)
    print(f"the command starts {worst * 1000:.0f} ms after the {shape} of redis-py's lock, at most")
    expect(worst < 1, "too late")

# Waiting, and holding after that, costs the server little.
def requests():
    return server.info("commandstats")["cmdstat_evalsha"]["calls"]

def requests_in(seconds):
    before = requests()
    time.sleep(seconds)
    return requests() - before

lock = server.lock("job", timeout=20)
expect(lock.acquire(blocking=False), "redis-py does not get a free lock")
waiters = [subprocess.Popen(run + ["-q", "--", "sleep", "1000"]) for _ in range(5)]
wait_for(lambda: server.zcard("{job}:queue") == 5, "five wait")
time.sleep(0.5)
in_a_second = requests_in(3) / 3  # two of the first, and four times a third
expect(in_a_second <= 5, f"five that wait for redis-py send {in_a_second:.1f} requests a second")
lock.release()
wait_for(lambda: server.zcard("{job}:queue") == 4, "one has the lock")
time.sleep(1.5)  # it subscribes and renews after a second
in_a_second = requests_in(3) / 3  # four times a third, and a renewal now and then
expect(in_a_second <= 3, f"one that waited for redis-py sends {in_a_second:.1f} requests a second")
for process in waiters:
    process.terminate()
for process in waiters:
    process.wait()
wait_for(lambda: not server.exists("job", "{job}:queue"), "all have left")

# Tried once.
lock = server.lock("job", timeout=20)
expect(lock.acquire(blocking=False), "redis-py does not get a free lock")
done = subprocess.run(run + ["-n", "--", "true"], capture_output=True, text=True)
expect(done.returncode == 75, f"status {done.returncode} while redis-py holds the lock: {done.stderr}")
expect(server.pttl("job") > 10000 and lock.owned(), "the lock of redis-py was touched")
lock.extend(20)
lock.release()

# The other way round.
holder = subprocess.Popen(run + ["--ttl", "2s", "--", "sh", "-c", f"until test -e {tmp}/go; do sleep 0.01; done; date +%s.%N"],
                          stdout=subprocess.PIPE, text=True)
wait_for(lambda: server.exists("job"), "dlock holds the lock")
lock = server.lock("job", timeout=20, sleep=0.01)
expect(not lock.acquire(blocking=False), "redis-py got a lock that dlock holds")
expect(not lock.acquire(blocking_timeout=3), "redis-py got a lock that dlock renews")
open(f"{tmp}/go", "w").close()
expect(lock.acquire(blocking_timeout=30), "redis-py does not get the lock when dlock has ended")
got = time.time()
ended = float(holder.communicate(timeout=30)[0])
expect(holder.returncode == 0 and got > ended, "redis-py got the lock before the command had ended")
lock.release()
PYTHON
