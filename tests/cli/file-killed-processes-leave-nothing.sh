#!/usr/bin/env bash
# ctest: longer in soak
# ctest: cost 15
# However holders and waiters are killed, the next list shows none of them, and leaves no file of theirs behind.
# KILL_SECONDS is for how long it tries.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3 pgrep

# registrations: what is left of holders and waiters.
registrations() { find "$locks" -mindepth 1 -name '*~w*'; }
files() { find "$locks" -path '*~w/*'; }
# none_left: the list is empty, and nothing is left.  A process that was killed may take a moment to die.
none_left() { [[ -z $("$DLOCK" list -q) && -z $(registrations) ]]; }

# One that ends leaves nothing.
for mode in '' --shared --slots=1; do
  slot=${mode/--shared/}  # an exclusive waiter, or for the same slot
  holder a -k job ${mode:+"$mode"}
  waiter b job ${slot:+"$slot"}
  finish a b
  assert_equal '' "$(files)" "LEFT BEHIND by those that ended, ${mode:-exclusive}"
  holder a -k job ${mode:+"$mode"}
  start b -k job -w 0.2 ${slot:+"$slot"}
  ends 75 b
  finish a
  assert_equal '' "$(files)" "LEFT BEHIND by one that gave up, ${mode:-exclusive}"
done

# One that is killed is gone with the next list: the launcher, the supervisor, or both; holder and waiter.
supervisor() { pgrep -o -P "${pid[$1]}"; }
kill_both() {
  local child
  child=$(supervisor "$1")
  kill -STOP "${pid[$1]}" "$child"
  kill -KILL "$child" "${pid[$1]}" 2>/dev/null  # the one may die with the other
}
job_is_free() { is_free job 2>err; }
for mode in '' --shared --slots=1; do
  slot=${mode/--shared/}  # an exclusive waiter, or for the same slot
  for how in launcher supervisor both; do
    holder a -k job ${mode:+"$mode"}
    waiter b job ${slot:+"$slot"}
    for name in b a; do
      case $how in
        launcher) kill -KILL "${pid[$name]}" ;;
        supervisor) kill -KILL "$(supervisor $name)" ;;
        both) kill_both $name ;;
      esac
      wait "${pid[$name]}" 2>/dev/null || true
      if [[ $name == b ]]; then
        nobody_waits() { (($(waiting job) == 0)); }
        wait_until 20 nobody_waits
      fi
    done
    touch a.go b.go
    wait_until 20 job_is_free
    wait_until 20 none_left
  done
done

# At random.
seconds=${KILL_SECONDS:-${TEST_SOAK:+60}}
cat >campaign.py <<'PY'
"""Clients run dlock, and their processes are killed at random, for so many seconds.  Nothing runs any more at the end."""
import os, random, signal, subprocess, sys, time
sys.path.insert(0, os.environ["TEST_SOURCE"] + "/tests/campaign")
sys.dont_write_bytecode = True
import processes

dlock, seconds = os.environ["DLOCK"], float(sys.argv[1])
seed = int(os.environ.get("KILL_SEED") or random.randrange(10**6))
print(f"seed {seed}")
random.seed(seed)
processes.adopt_orphans()
LONG = "a/" * 100  # has a folder of its own
# Of one kind for each key, so that no request is refused because of another.
MODES = {"one": [[]], "two": [["--slots", "3"]], LONG: [[], ["--shared"]]}
running, started, killed = [], 0, 0

def dlocks(launcher):
    """The launcher and what it has started itself."""
    return [launcher] + [pid for pid in processes.children(launcher)
                      if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(dlock)]

def start():
    key = random.choice(list(MODES))
    mode = random.choice(MODES[key])
    command = [dlock, "run", "-q", "-k", key, *mode, *random.choice([[], [], ["-w", "0.1"]]), "--",
               "sleep", f"{random.choice([0.001, 0.01, 0.05]):.3f}"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

end = time.monotonic() + seconds
while time.monotonic() < end:
    while len(running) < 12:
        running.append(start())
        started += 1
    time.sleep(random.uniform(0, 0.02))
    victim = random.choice(running)
    try:
        tree = dlocks(victim.pid)
        for pid in random.choice([tree, tree[:1], tree[-1:], random.sample(tree, 1)]):
            # No other process can have this number: nobody has waited for it.
            os.kill(pid, signal.SIGKILL)
            killed += 1
    except OSError:
        pass  # it has ended
    running = [process for process in running if process.poll() is None]
    if random.random() < 0.05:
        subprocess.run([dlock, "list"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
processes.kill_all(set())
print(f"{started} runs, {killed} processes killed")
assert killed > seconds
PY
rm -rf "$locks"
mkdir -m 0700 "$locks"
python3 campaign.py "${seconds:-8}" >campaign.out || fail "the campaign: $(<campaign.out)"
cat campaign.out
assert_equal '' "$("$DLOCK" list -q)" "LEFT BEHIND: the list after the campaign"
assert_equal '' "$(registrations)" "LEFT BEHIND after the campaign and a list"
for key in one two "$(printf 'a/%.0s' {1..100})"; do assert_free "$key" || fail "NOBODY GOT IN: $key"; done
# Per key its lock file, those of three slots, and a few that every key has.
files=$(find "$locks" -type f | wc -l)
((files <= 3 * 10)) || fail "LEFT BEHIND: $files files of three keys: $(find "$locks" -type f)"
