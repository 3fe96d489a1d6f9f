#!/usr/bin/env bash
# --status-file tells what happened as JSON: for each outcome, in one step, never an earlier run's,
# to a descriptor as well, or else nothing is started.
. "$(dirname "$0")/lib.sh"

need python3
cd "$tmp"

# outcome NAME OUTCOME STATUS ARGUMENTS...: runs with --status-file and keeps the file as NAME for
# the check at the end, with what must be in it.
expected=()
outcome() {
  local name=$1 want=$3
  expected+=("$1" "$2" "$3")
  shift 3
  rm -f status
  try "$want" -q --status-file status "$@"
  [[ -e status ]] || fail "dlock run $* wrote no status file ($(<err))"
  mv status "status.$name"
}

outcome completed completed 0 -k job -- true
outcome completed-3 completed 3 -k job -- sh -c 'exit 3'
outcome completed-75 completed 75 -k job -- sh -c 'exit 75'
# shellcheck disable=SC2016  # $$ is the command's
outcome killed signalled 137 -k job -- sh -c 'kill -KILL $$'
outcome not-found not-started 127 -k job -- ./missing
outcome not-executable not-started 126 -k job -- ./err
outcome max-hold max-hold 124 -k job --max-hold 0.1 -- sleep 300
outcome unreachable unreachable 69 -k job -b "file://$tmp/missing" -- true
mkdir -m 0777 open
outcome denied denied 77 -k job -b "file://$tmp/open" -- true
outcome odd-key completed 0 -k $'j\u00f6b "\\ \U1F512' -- true
# shellcheck disable=SC2016
outcome lost lost 79 -k lost --kill-after 1 -- sh -c 'rm "$1"; sleep 300' sh "$locks/lost"

# shellcheck disable=SC2016  # for the inner shell
holds='touch "$1"; until test -e go; do sleep 0.02; done'
"$DLOCK" run -k held -- sh -c "$holds" sh held &
holders=$!
"$DLOCK" run -k slots --slots 2 -- sh -c "$holds" sh slots &
holders+=" $!"
wait_until 30 test -e held -a -e slots
outcome mode error 64 -k slots --slots 3 -- true
outcome busy busy 75 -k held -n -- true
outcome busy-E busy 9 -k held -w 0.2 -E 9 -- true

env --default-signal "$DLOCK" run -q --status-file status -k held -- true &
waiter=$!
waits() { grep -qsxF "dlock-$1" /proc/[0-9]*/comm; }  # its helper, in flock(2)
wait_until 30 waits "$waiter"
kill -TERM "$waiter"
got=0
wait "$waiter" || got=$?
assert_equal 143 "$got" "exit status of a waiter that got SIGTERM"
mv status status.cancelled
expected+=(cancelled signalled 143)
touch go
# shellcheck disable=SC2086  # two
wait $holders

cat >check.py <<'PY'
import json, sys
problems = []
rows = iter(sys.argv[1:])
for name, outcome, status in zip(rows, rows, rows):
    try:
        with open('status.' + name, 'rb') as file:
            text = file.read()
        got = json.loads(text.decode('utf-8'))
    except ValueError as error:
        problems.append(f'{name}: {error}')
        continue
    def need(condition, what):
        if not condition:
            problems.append(f'{name}: {what}: {got}')
    ran = outcome in ('completed', 'lost', 'max-hold', 'not-started') or name == 'killed'
    need(text.endswith(b'}\n') and text.count(b'\n') == 1, 'not one line')
    need(set(got) == {'outcome', 'exit_status', 'key', 'backend', 'fence', 'waited_ms', 'held_ms',
                      'reason'}, 'not the documented members')
    need(got['outcome'] == outcome, f'outcome is not {outcome}')
    need(got['exit_status'] == int(status), f'exit_status is not {status}')
    need(got['backend'].startswith('file:///'), 'backend is no URL')
    for member in 'waited_ms', 'held_ms':
        need(type(got[member]) is int and 0 <= got[member] < 60000, f'{member} is no time')
    need(type(got['fence']) is int and got['fence'] > 0 if ran else got['fence'] is None,
         'fence')
    need(got['reason'] is None if outcome == 'completed' else got['reason'], 'reason')
    keys = {'odd-key': 'j\u00f6b "\\ \U0001f512', 'lost': 'lost', 'mode': 'slots',
            'busy': 'held', 'busy-E': 'held', 'cancelled': 'held'}
    need(got['key'] == keys.get(name, 'job'), 'key')
    if name == 'max-hold':
        need(got['held_ms'] >= 100, 'held_ms is shorter than --max-hold')
    if name == 'busy-E':
        need(got['waited_ms'] >= 200, 'waited_ms is shorter than --wait')
sys.exit('\n'.join(problems) or None)
PY
python3 check.py "${expected[@]}" || fail "a status file does not say what happened"

# What an earlier run wrote is gone when the command starts, and nothing else is left beside it.
mkdir dir
echo stale >dir/status
expect_status 0 "$DLOCK" run -k job --status-file dir/status -- test ! -e dir/status
assert_equal status "$(ls -A dir)" "what is in the directory of the status file"

# In one step: a reader finds no file, or a whole one.
cat >read.py <<'PY'
import json, os
while not os.path.exists('enough'):
    try:
        with open('dir/status') as file:
            json.loads(file.read())
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise SystemExit(f'the status file is not whole: {error}')
PY
python3 read.py &
reader=$!
for ((i = 0; i < 100; ++i)); do
  "$DLOCK" run -k "job$((i % 2))" --status-file dir/status -- true
done
touch enough
wait "$reader" || fail "somebody who reads the status file while runs replace it finds half of it, or an empty one"
assert_equal status "$(ls -A dir)" "what is in the directory of the status file after 100 runs"

# What an earlier run that was killed has left beside it is not in the way: in a container dlock has the same pid each time.
if unshare --pid --fork --mount-proc true 2>unshare.err; then
  for i in {1..50}; do echo left >"dir/status.dlock-$i"; done
  expect_status 0 unshare --pid --fork --mount-proc "$DLOCK" run -k job --status-file dir/status -- true
  assert_contains "$(<dir/status)" '"outcome":"completed"' "the status file beside leftovers"
fi

# Where it cannot be written, nothing is started.
mkfifo fifo
for target in missing/status dir open/held/x fifo /dev/null /dev/fd/77 ''; do
  try 64 -k job --status-file "$target" -- touch started >out
  assert_equal 1 "$(wc -l <err)" "lines on stderr for --status-file '$target'"
  assert_contains "$(<err)" "dlock: " "stderr for --status-file '$target'"
  assert_equal '' "$(<out)" "stdout for --status-file '$target'"
done
if ((EUID != 0)); then
  try 64 -k job --status-file /etc/dlock-status -- touch started
fi
[[ ! -e started ]] || fail "the command was started although the status file cannot be written"

# Descriptors.
out=$("$DLOCK" run -k job --status-file /dev/stdout -- echo said)
assert_contains "$out" $'said\n{' "a pipe as stdout and --status-file /dev/stdout"
assert_contains "$out" '"outcome":"completed"' "a pipe as stdout and --status-file /dev/stdout"
"$DLOCK" run -k job --status-file >(cat >substituted) -- true
wait_until 30 test -s substituted
assert_contains "$(<substituted)" '"outcome":"completed"' "a process substitution"
# The outcome stands behind what the command wrote.
"$DLOCK" run -k job --status-file /dev/stdout -- echo said >out
assert_contains "$(<out)" $'said\n{' "a file as stdout and --status-file /dev/stdout"
