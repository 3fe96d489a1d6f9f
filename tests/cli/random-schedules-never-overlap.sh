#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: processors 2
# ctest: longer in soak
# ctest: cost 20
# 12 workers take 3 locks in all modes, in random order, and some of their dlocks are killed: no two jobs
# overlap that their modes forbid, no increment of an unprotected counter is lost, the fencing tokens of
# each lock only grow, and no holder and no waiter is left behind.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

cat >"$tmp/job.py" <<'PYTHON'
# Each job has a file of its own, locked for as long as it lives: the kernel tells the living from
# the dead.  A job is there before it looks, so of two that overlap at least one sees the other.
import fcntl, os, sys, time
live, key, mode, nap = sys.argv[1:]
fence = int(os.environ["DLOCK_FENCE"])
name = f"{key}.{mode}.{fence}.{os.getpid()}"
mine = os.open(f"{live}/new.{name}", os.O_CREAT | os.O_RDWR)
fcntl.flock(mine, fcntl.LOCK_EX)
os.rename(f"{live}/new.{name}", f"{live}/{name}")

alive, seen = [], []
for other in os.listdir(live):
    its_key, its_mode, its_fence, *_ = other.split(".")
    if its_key != key or other == name:
        continue
    seen.append((its_mode, int(its_fence)))
    fd = os.open(f"{live}/{other}", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        alive.append(its_mode)
    os.close(fd)
both = [mode, *alive]
if "exclusive" in both and alive or len(set(both)) > 1 or mode == "slots" and len(both) > 2:
    sys.exit(f"OVERLAP on {key}: {mode} beside {alive}")
# Those that hold it together may get here in another order than they were granted.
stale = [f for m, f in seen if f == fence or f > fence and "exclusive" in (mode, m)]
if stale:
    sys.exit(f"STALE on {key}: {mode} with fence {fence} after {stale}")

# Another oracle, of exclusive jobs: a counter that is read and written, and a file that is only appended to.
if mode == "exclusive":
    counter = f"{live}/../counter.{key}"
    value = int(open(counter).read())
    with open(f"{counter}.new", "w") as new:
        new.write(str(value + 1))
    os.rename(f"{counter}.new", counter)
    with open(f"{live}/../committed.{key}", "a") as committed:
        committed.write("x")
time.sleep(float(nap))
PYTHON

python3 - "$DLOCK" "$tmp" <<'PYTHON'
import collections, os, random, signal, subprocess, sys, threading, time

dlock, tmp = sys.argv[1:]
live = f"{tmp}/live"
os.mkdir(live)
GRANTS = 2000 if os.environ.get("TEST_SOAK") else 120
KEYS = ["key0", "key1", "key2"]
for key in KEYS:
    open(f"{tmp}/counter.{key}", "w").write("0")
    open(f"{tmp}/committed.{key}", "w").close()
# Those of dlock: unlike what was asked for (busy, another mode), or killed as we did.
ORDINARY = {0, 64, 75}
KILLED = {-9, 69, 70, 79}
MODES = {"exclusive": [], "shared": ["--shared"], "slots": ["--slots", "2"]}
# What stands in /proc until the process has been waited for.
counts, errors, lock = collections.Counter(), [], threading.Lock()
seed = random.randrange(10**9)

def children(pid):
    try:
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []

def worker(number):
    rng = random.Random(seed + number)
    while counts["granted"] < GRANTS and not errors:
        mode, key = rng.choice(list(MODES)), rng.choice(KEYS)
        # A job that is killed with its dlock must not be the one that says all is well.
        nap = rng.choice([0, 0, 0.02, 0.1])
        process = subprocess.Popen(
            [dlock, "run", "-q", "-k", key, "--ttl", "4s", "-w", rng.choice(["0", "0.2", "3"]), *MODES[mode],
             "--", sys.executable, "-I", "-S", f"{tmp}/job.py", live, key, mode, str(nap)],
            stderr=subprocess.PIPE)
        kill = rng.random() < 0.15
        if kill:
            time.sleep(rng.uniform(0, 0.3))
            victim = process.pid if rng.random() < 0.7 else (children(process.pid) or [process.pid])[0]
            if victim != process.pid:
                with open(f"{tmp}/killed", "a") as killed:
                    killed.write(f'"pid":{process.pid}\n')
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        err = process.communicate()[1].decode(errors="replace")
        status = process.returncode
        with lock:
            counts["granted" if status == 0 else f"status {status}"] += 1
            if kill:
                counts["killed"] += 1
            if "OVERLAP" in err or "STALE" in err:
                errors.append(err)
            elif status not in ORDINARY and not (kill and status in KILLED):
                errors.append(f"status {status}: {err}")

threads = [threading.Thread(target=worker, args=(n,)) for n in range(12)]
started = time.monotonic()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if errors:
    sys.exit(f"seed {seed}: " + "\n".join(errors[:5]))

# One that was killed between counting and committing has counted.
for key in KEYS:
    value, committed = (int(open(f"{tmp}/counter.{key}").read()),
                        os.path.getsize(f"{tmp}/committed.{key}"))
    if not committed <= value <= committed + counts["killed"]:
        sys.exit(f"OVERLAP on {key}: the counter says {value}, {committed} were committed, "
                 f"{counts['killed']} were killed (seed {seed})")
print(f"{dict(counts)} in {time.monotonic() - started:.1f} s")
PYTHON

# What was killed is there for a ttl.
touch killed
nothing_is_held() {
  local key
  for key in key0 key1 key2; do "$DLOCK" show "$key" >left 2>&1 || (($? == 1)) || return 1; done
  [[ -z $("$DLOCK" list -q | tee left) ]]
}
# queued_at SERVER KEY: prints the waiters in the queue of KEY.  If the supervisor of a waiter is killed, its place
# stays until the next client uses the key, so those are left out, and so are places whose record has expired (60 s).
queued_at() {
  local entry record
  for entry in $(rcli "$1" zrange "{dlock:$2}:queue" 0 -1); do
    record=$(rcli "$1" get "{dlock:$2}:waiter:${entry#*:}")
    [[ -z $record ]] || grep -qx "$(grep -o '"pid":[0-9]*' <<<"$record")" killed || echo "$1 $2 $record"
  done
}
case $backend in
  redis) waiters_left() { queued_at server "key$1"; } ;;
  redlock)
    waiters_left() {
      local name
      for name in "${!redis_port[@]}"; do queued_at "$name" "key$1"; done
    }
    ;;
  zookeeper) waiters_left() { zk server ls "/dlock/key$1"; } ;;
  mysql-*)
    waiters_left() {
      sql server "SELECT owner FROM dlock_locks WHERE name = 'key$1' AND role = 'waiter'
                  AND IS_USED_LOCK(CONCAT('dlock.', owner))"
    }
    ;;
  *) waiters_left() { "$DLOCK" show "key$1" | grep -i waiter || true; } ;;
esac
nothing_waits() {
  local key
  for key in 0 1 2; do waiters_left $key; done | grep . >left || return 0
  return 1
}
nothing_is_left() { nothing_is_held && nothing_waits; }
(wait_until 20 nothing_is_left) || fail "LEFT BEHIND 20 s after the last job: $(<left)"
