#!/usr/bin/env bash
# ctest: cost 20
# Who has to wait for more than a moment is told for whom, again when the holder changes, and when it is over; on a
# terminal it is one line that is kept current and is gone when the command writes.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

need python3
cd "$tmp"

# hold NAME KEY: holds KEY until the file NAME.go appears; dlock's pid is left in $holder.
hold() {
  "$DLOCK" run -q -k "$2" -- ./hold.sh "$1" &
  holder=$!
}
cat >hold.sh <<'SH'
#!/bin/sh
touch "$1.held"
until test -e "$1.go"; do sleep 0.02; done
SH
chmod +x hold.sh
said() { (($(wc -l <"$1") >= $2)); }
# waits PID: this dlock is in the queue; its helper has its number for a name.
waits() { grep -qsxF "dlock-$1" /proc/[0-9]*/comm; }

host=$(uname -n)
# held_by PID: what the waiter must say while this dlock holds the lock.
held_by() { echo "held by $(id -un) on $host, pid $1 \(hold\.sh\), for [0-9.]+(ms|s)\$"; }

# Nothing to wait for, nothing to say; nor when the wait is short.
"$DLOCK" run -k job -- true 2>err
assert_equal '' "$(<err)" "stderr when the lock is free"
for ((i = 0; ; ++i)); do
  ((i < 40)) || fail "no wait was as short as it should have been"
  hold "short$i" job
  wait_until 30 test -e "short$i.held"
  (sleep 0.05; touch "short$i.go") &
  start=${EPOCHREALTIME/./}
  "$DLOCK" run -k job -- true 2>err
  took=$((${EPOCHREALTIME/./} - start))
  wait
  ((took > 350000)) || break  # the machine was busy: it may have spoken
done
assert_equal '' "$(<err)" "stderr of a dlock that waited for less than 0.4 s"

# Two lines, one more when somebody else holds the lock, and one when it is over.
hold a job
a=$holder
wait_until 30 test -e a.held
hold b job
b=$holder
wait_until 30 waits "$b"
"$DLOCK" run -k job -- touch ran 2>err &
waiter=$!
wait_until 30 said err 2
[[ $(<err) =~ ^'dlock: waiting for "job" (one of 2)'$'\n''dlock: '$(held_by "$a") ]] || fail "a waiter says: $(<err)"
touch a.go
wait_until 30 test -e b.held
wait_until 30 said err 3
[[ $(tail -n 1 err) =~ ^'dlock: still waiting for "job" after '[0-9.]+(ms|s)'; '$(held_by "$b") ]] ||
  fail "when the holder changes, a waiter says: $(<err)"
touch b.go
wait "$waiter"
[[ -e ran ]] || fail "the waiter's command did not run"
[[ $(tail -n 1 err) =~ ^'dlock: acquired "job" after '[0-9.]+(ms|s)$ ]] || fail "when it is over, a waiter says: $(<err)"
assert_equal 4 "$(wc -l <err)" "lines that a waiter said about two holders ($(<err))"

# The number of those that wait is there when several do.
rm -f a.* b.*
hold c job
wait_until 30 test -e c.held
waiters=()
for ((i = 0; i < 3; ++i)); do
  "$DLOCK" run -q -k job -- true &
  waiters+=($!)
  wait_until 30 waits $!
done
got=0
"$DLOCK" run -k job -w 1 -- true 2>err || got=$?
assert_equal 75 "$got" "status of a wait that runs out"
assert_equal 3 "$(wc -l <err)" "lines on stderr of a wait that runs out"
assert_equal 'dlock: waiting for "job" (one of 4), for at most 1s' "$(head -n 1 err)" "what is said with three others waiting"
gave_up="^dlock: gave up after 1s: \"job\" is $(held_by "$holder")"
[[ $(tail -n 1 err) =~ ${gave_up%\$}"; details: dlock show -b $DLOCK_BACKEND job"$ ]] || fail "a wait that ran out ends with: $(tail -n 1 err)"

# -q: not a word, whatever happens.
got=0
"$DLOCK" run -q -k job -w 0.6 -- true 2>err || got=$?
assert_equal '75/' "$got/$(<err)" "status and stderr of dlock run -q that waits and gives up"

# The label, and --json.
got=0
"$DLOCK" run --json -k job -w 0.8 -- true 2>err || got=$?
python3 - err <<'PY' || fail "with --json, stderr is not one JSON object per line: $(<err)"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line['level'] for line in lines] == ['note', 'note', 'warning'], lines
assert lines[0]['message'] == 'waiting for "job" (one of 4), for at most 800ms', lines
assert lines[1]['message'].startswith('held by '), lines
PY
touch c.go
wait "${waiters[@]}"

# On a terminal.
cat >terminal.py <<'PY'
import os, pty, re, subprocess, sys

master, slave = pty.openpty()
dlock = subprocess.Popen([os.environ['DLOCK'], 'run', '-k', 'job', '--', 'echo', 'OUTPUT'],
                         stdin=slave, stdout=slave, stderr=slave)
os.close(slave)
seen = b''
try:
    while chunk := os.read(master, 4096):
        seen += chunk
        if seen.count(b': waiting ') >= 3 and not os.path.exists('d.go'):
            open('d.go', 'w').close()
except OSError:  # how Linux tells that the other side is closed
    pass
status = dlock.wait()
line = rb'dlock: waiting [0-9.]+m?s: held [0-9.]+m?s by [^\r\n]+ pid [0-9]+ \(hold.sh\), job'
whole = rb'(\r\x1b\[K' + line + rb'){3,}(\r\x1b\[K)+OUTPUT\r\n'
if status != 0 or not re.fullmatch(whole, seen):
    sys.exit(f'on a terminal, dlock exits with {status} and shows {seen!r}')
if len(set(re.findall(line, seen))) < 2:
    sys.exit(f'the line on the terminal is not kept current: {seen!r}')
PY
hold d job
wait_until 30 test -e d.held
timeout 60 python3 terminal.py || fail "the line on a terminal is not right"
wait "$holder"

# A wait that runs out leaves the reason on the terminal, and not the line.
cat >timeout.py <<'PY'
import os, pty, re, subprocess, sys

master, slave = pty.openpty()
dlock = subprocess.Popen([os.environ['DLOCK'], 'run', '-k', 'job', '-w', '1', '--', 'true'],
                         stdin=slave, stdout=slave, stderr=slave)
os.close(slave)
seen = b''
try:
    while chunk := os.read(master, 4096):
        seen += chunk
except OSError:
    pass
shown = [line.split(b'\r\x1b[K')[-1] for line in seen.split(b'\r\n')]
if dlock.wait() != 75 or len(shown) != 2 or not shown[0].startswith(b'dlock: gave up after 1s'):
    sys.exit(f'what is left on the terminal of a wait that ran out: {seen!r}')
if shown[1]:
    sys.exit(f'the line is not wiped: {seen!r}')
PY
hold e job
wait_until 30 test -e e.held
timeout 60 python3 timeout.py || fail "a wait that runs out on a terminal does not end as it should"
touch e.go
wait "$holder"

# Who does not wait is not told to be waiting, however long it takes to find that out.
start_redis server
start_proxy slow "${redis_port[server]}"
export DLOCK_BACKEND=${redis_url[server]}
hold f job
wait_until 30 test -e f.held
proxy slow delay 200
for ((i = 0; i < 10; ++i)); do
  got=0
  "$DLOCK" run -n -k job -b "redis://127.0.0.1:${proxy_port[slow]}" -- true 2>err || got=$?
  assert_equal 75 "$got" "status of a dlock that does not wait ($(<err))"
  [[ $(<err) =~ ^'dlock: "job" is '$(held_by "$holder") ]] ||
    fail "a dlock that does not wait says: $(<err)"
done
touch f.go
wait "$holder"
