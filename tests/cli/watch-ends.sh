#!/usr/bin/env bash
# "dlock watch" ends with 0 when the reader of its output has gone, also if nothing changes, and by SIGINT and SIGTERM,
# also while the pipe is full; a disk that is full is an error.
. "$(dirname "$0")/lib.sh"
need python3
cd "$tmp"
hold --ttl 30s

"$DLOCK" watch --interval 1 | head -n 1 >out
assert_equal '0 0' "${PIPESTATUS[*]}" "a reader that has read one line"
assert_contains "$(<out)" '  present  job  '
for format in '' --json; do
  # shellcheck disable=SC2086
  "$DLOCK" watch --interval 1h $format | true
  assert_equal '0 0' "${PIPESTATUS[*]}" "a reader that has gone"
done
expect_status 1 timeout 20 "$DLOCK" watch --interval 1 >/dev/full 2>err
assert_contains "$(<err)" 'No space left on device'

# Signals; nohup is respected.
python3 - "$DLOCK" <<'PYTHON'
import fcntl, os, signal, subprocess, sys, time

def started(*words, **more):
    return subprocess.Popen([sys.argv[1], "watch", "--interval", "1", *words], stdout=subprocess.PIPE, **more)

for number in signal.SIGINT, signal.SIGTERM:
    watch = started()
    assert b"present" in watch.stdout.readline()
    watch.send_signal(number)
    assert watch.wait(20) == 0, (number, watch.returncode)
watch = started()
watch.stdout.readline()
watch.send_signal(signal.SIGHUP)
assert watch.wait(20) == -signal.SIGHUP, watch.returncode
watch = started(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
watch.stdout.readline()
watch.send_signal(signal.SIGHUP)
time.sleep(0.2)
assert watch.poll() is None
watch.kill()

# A pipe that nobody reads, and that is full.
read, write = os.pipe()
os.set_blocking(write, False)
try:
    while os.write(write, b"x" * 4096): pass
except BlockingIOError:
    pass
os.set_blocking(write, True)
watch = subprocess.Popen([sys.argv[1], "watch"], stdout=write)
def is_blocked():
    return "pipe" in open(f"/proc/{watch.pid}/wchan").read() or "S" in open(f"/proc/{watch.pid}/stat").read().split()[2]
end = time.monotonic() + 20
while not is_blocked() and time.monotonic() < end: time.sleep(0.01)
time.sleep(0.3)
watch.send_signal(signal.SIGTERM)
assert watch.wait(20) == 0, watch.returncode
PYTHON
release
