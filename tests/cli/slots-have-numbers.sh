#!/usr/bin/env bash
# ctest: every backend
# Each command with --slots N finds a number of 1 to N in DLOCK_SLOT that no other has, the lowest that is free, and
# "dlock show" tells it.  The number of one that ends, or is killed, is given to another.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

cat >numbered <<'SH'
#!/bin/bash
echo "${DLOCK_SLOT-none}" >"$1.slot"
exec ./job "$1"
SH
chmod +x numbered
job=./numbered
slot() { cat "$1.slot"; }

# shown: a line "PID NUMBER" for each holder, as show tells it; expected NAME...: as these commands know it.
shown() {
  "$DLOCK" show --json job | python3 -c '
import json, sys
for holder in json.load(sys.stdin)["holders"]: print(holder["pid"], holder["slot"])' | sort
}
expected() {
  local name
  for name in "$@"; do echo "${pid[$name]} $(slot "$name")"; done | sort
}

# All at once.
for name in a b c d; do start $name -k job --slots 4; done
for name in a b c d; do runs $name; done
assert_equal '1 2 3 4' "$(for name in a b c d; do slot $name; done | sort | xargs)" "numbers of four"
assert_equal "$(expected a b c d)" "$(shown)" "what show tells of four"
"$DLOCK" show job >out
assert_equal "1 2 3 4" "$(sed -n 's/^  Slot  *//p' out | xargs)" "the slots in show, in their order"

# One ends, and a waiter gets its number; two end, and the next has the lower one.
waiter e job --slots 4
finish b
runs e
assert_equal "$(slot b)" "$(slot e)" "the number after one has ended"
finish d a
holder f -k job --slots 4
holder g -k job --slots 4
assert_equal "$(for name in a d; do slot $name; done | sort | xargs)" "$(slot f) $(slot g)" "the numbers of two after two have ended"
assert_equal "$(expected c e f g)" "$(shown)" "what show tells after that"
finish c e f g

# One whose launcher is killed: the other process ends the command, and its number comes back.
holder a -k job --slots 2
holder b -k job --slots 2
waiter c job --slots 2
kill -KILL "${pid[a]}"
runs c
assert_equal 1 "$(slot c)" "the number of one whose launcher was killed"
finish b c

# All processes of one are killed.
holder a -k job --slots 2 --ttl 2
holder b -k job --slots 2
mapfile -t tree < <(tree_of "${pid[a]}")
kill -KILL "${tree[@]}"
start c -k job --slots 2
runs c
assert_equal 1 "$(slot c)" "the number of one that was killed"
finish b c

# A run in another mode has none, also below one that has, and no setting of the caller's is taken for one.
export DLOCK_SLOT=7
for mode in '' --shared; do
  [[ $mode != --shared || ${trait[shared]} == true ]] || continue
  assert_equal none "$("$DLOCK" run -k other ${mode:+"$mode"} -- sh -c 'echo "${DLOCK_SLOT-none}"')" "DLOCK_SLOT ${mode:-exclusive}"
done
unset DLOCK_SLOT
assert_equal '1 none 1' "$("$DLOCK" run -k job --slots 2 -- sh -c \
  'echo "$DLOCK_SLOT $("$DLOCK" run -k other -- sh -c "echo \${DLOCK_SLOT-none}") $DLOCK_SLOT"')" "DLOCK_SLOT of nested runs"
assert_equal '1 1' "$("$DLOCK" run -k job --slots 2 -- sh -c \
  'echo "$DLOCK_SLOT $("$DLOCK" run -k job --slots 2 -- sh -c "echo \${DLOCK_SLOT-none}")"')" "DLOCK_SLOT of a run that borrows the lock"
"$DLOCK" run -k job -- true
"$DLOCK" run -k job -- "$DLOCK" show job >out
! grep -q SLOT out || fail "show has a column SLOT without slots: $(<out)"
