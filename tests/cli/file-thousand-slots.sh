#!/usr/bin/env bash
# A waiter for one of a thousand slots that are all taken has few processes, gets the slot that is released, and needs no
# more open files than a process usually may have.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3
(($(ulimit -H -n) >= 2100)) || skip "no process may have so many open files"
ulimit -S -n 1024

# A process that has flocked all slots but the first, as their holders would, and lets go of the one whose number is in
# ./free.
cat >take.py <<'PY'
import fcntl, os, resource, sys, time

resource.setrlimit(resource.RLIMIT_NOFILE, (2100, 2100))
path, count = sys.argv[1], int(sys.argv[2])
names = {number: f"{path}~slot{number}" for number in range(2, count + 1)}
slots = {number: os.open(name, os.O_RDWR | os.O_CREAT, 0o600) for number, name in names.items()}
for slot in slots.values():
    fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
open("taken", "w").close()
while True:
    time.sleep(0.02)
    try:
        with open("free") as file:
            os.close(slots.pop(int(file.read())))
    except (KeyError, OSError, ValueError):
        pass
PY
cat >numbered <<'SH'
#!/bin/bash
echo "${DLOCK_SLOT-none} $(ulimit -S -n)" >"$1.slot"
exec ./job "$1"
SH
chmod +x numbered

holder exclusive -k exclusive
waiter alone exclusive -q
one=$(tree_of "${pid[alone]}" | wc -l)
finish exclusive alone

job=./numbered
holder first -k job --slots 1024
(umask 077; exec python3 take.py "$locks/job" 1024) &
wait_until 60 test -e taken
expect_status 75 "$DLOCK" run -q -n -k job --slots 1024 -- true

for number in 777 1024 1; do
  waiter "w$number" job -q --slots 1024
  processes=$(tree_of "${pid[w$number]}" | wc -l)
  ((processes <= one + 1)) || fail "a waiter for a thousand slots has $processes processes, one for an exclusive lock $one"
  if ((number == 1)); then
    finish first
  else
    echo $number >free.new
    mv free.new free
  fi
  runs "w$number"
  assert_equal "$number 1024" "$(<"w$number.slot")" "the slot that it got, and how many open files its command may have"
done
finish w777 w1024 w1
