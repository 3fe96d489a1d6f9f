#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 15
# Not on a terminal, "dlock watch" prints a line for each change, and with --json an object: who held the lock at the
# start, who acquires it, waits for it, gives up waiting, and who has gone.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

holder first -k data/first
"$DLOCK" watch --interval 1 data/ >lines 2>lines.err &
"$DLOCK" watch --interval 1 --json data/ >objects 2>objects.err &
"$DLOCK" watch --interval 1 --older-than 2s -o key,command data/ >old &

# seen EVENT KEY NAME: both have said so of the dlock NAME.
seen() {
  local event=$1 key=$2 name=$3
  [[ $(grep -csE "^[0-9-]+T[0-9:.]+Z  $event  $key  [^ ]+  ${pid[$name]}  " lines) -ge 1 &&
    $(grep -csE "\"event\":\"$event\",\"key\":\"$key\",.*\"pid\":${pid[$name]}," objects) -ge 1 ]]
}
wait_until 30 seen present data/first first
holder other -k other
holder a -k data/job
wait_until 30 seen acquired data/job a
waiter b data/job
waiter c data/job
wait_until 30 seen waiting data/job b
wait_until 30 seen waiting data/job c
kill -TERM "${pid[c]}"
wait_until 30 seen gone data/job c
finish a
wait_until 30 seen gone data/job a
wait_until 30 seen acquired data/job b
old() { grep -qE '  present  data/job  ' old; }
wait_until 30 old
finish b
wait_until 30 seen gone data/job b
finish first other
wait_until 30 seen gone data/first first
kill -TERM %2 %3 %4 2>/dev/null || true

assert_lacks "$(<lines)$(<objects)" other "a key that was not asked for"
assert_equal '' "$(<lines.err)$(<objects.err)" "messages"
[[ $(head -n 1 old) == *'  present  data/first  '*job ]] || fail "with columns: $(<old)"

# Each object has what a program needs; a waiter that got the lock has not gone.
python3 - "${trait[knows_waiters]:-true}" <<'PYTHON'
import json, sys
events = [json.loads(line) for line in open("objects")]
kinds = [(event["event"], event.get("key"), "waiter" in event) for event in events]
assert kinds[:2] == [("present", "data/first", False), ("synced", None, False)], kinds
assert sorted(kinds[2:]) == sorted(
    [("acquired", "data/job", False), ("waiting", "data/job", True), ("waiting", "data/job", True),
     ("gone", "data/job", True), ("gone", "data/job", False), ("acquired", "data/job", False),
     ("gone", "data/job", False), ("gone", "data/first", False)]), kinds
holder = events[0]["holder"]
assert holder["kind"] == "run" and holder["held_ms"] >= 0 and len(holder["id"]) == 12, holder
for event in events:
    if event["event"] == "waiting":
        assert event["holder"]["pid"] != event["waiter"]["pid"] and event["waiters"] >= 1, event
assert events[-1]["waiters"] == 0, events[-1]
PYTHON
