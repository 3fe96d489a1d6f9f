#!/usr/bin/env bash
# ctest: cost 15
# A waiter for one of many slots costs at most one process more than a waiter for an exclusive lock, and gets the slot
# that is released, whichever it is; the command finds its number, the lowest that was free, in DLOCK_SLOT.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

# below NAME: how many processes are below this dlock.
below() { echo $(($(tree_of "${pid[$1]}" | wc -l) - 1)); }
cat >numbered <<'SH'
#!/bin/bash
echo "${DLOCK_SLOT-none}" >"$1.slot"
exec ../job "$1"
SH
chmod +x numbered
mkdir work
cd work
job=../numbered
slot() { cat "$1.slot"; }

# The cost of an exclusive waiter.
holder exclusive -k exclusive
waiter alone exclusive -q
one=$(below alone)
finish exclusive alone

# 40 holders have the numbers 1 to 40; the next one waits.
names=()
for ((i = 1; i <= 40; ++i)); do
  names+=("n$i")
  start "n$i" -k job --slots 40
done
for name in "${names[@]}"; do runs "$name"; done
assert_equal "$(seq 40 | xargs)" "$(for name in "${names[@]}"; do slot "$name"; done | sort -n | xargs)" "the numbers of 40 holders"
waiter next job -q --slots 40
processes=$(below next)
((processes <= one + 1)) || fail "a waiter for 40 slots has $processes processes below it, one for an exclusive lock $one"
waiter later job -q --slots 40
processes=$(below later)
((processes <= one + 1)) || fail "the second waiter for 40 slots has $processes processes below it, one for an exclusive lock $one"

# They get those that are released.
finish n17
either() { [[ -e next.held || -e later.held ]]; }
wait_until 30 either
first=next second=later
[[ -e next.held ]] || first=later second=next
assert_equal "$(slot n17)" "$(slot $first)" "the number of the one that got the slot of another"
finish n40
runs $second
assert_equal "$(slot n40)" "$(slot $second)" "the number of the next one"

# The lowest that is free.
finish n8 n30 n3
free=$(for name in n8 n30 n3; do slot $name; done | sort -n | xargs)
for name in x y z; do holder $name -k job --slots 40; done
assert_equal "$free" "$(slot x) $(slot y) $(slot z)" "the numbers of three that came when three slots were free"
holding=()
for name in "${names[@]}" next later x y z; do
  [[ $name == @(n17|n40|n8|n30|n3) ]] || holding+=("$name")
done
assert_equal 40 "${#holding[@]}" "holders"
finish "${holding[@]}"

# A number is there for slots only, also in what is started below such a run.
export DLOCK_SLOT=7
for mode in '' --shared; do
  assert_equal none "$("$DLOCK" run -k other ${mode:+"$mode"} -- sh -c 'echo "${DLOCK_SLOT-none}"')" "DLOCK_SLOT ${mode:-exclusive}"
done
assert_equal 1 "$("$DLOCK" run -k job --slots 2 -- sh -c 'echo "$DLOCK_SLOT"')" "DLOCK_SLOT that was inherited, of slots"
assert_equal '1 none 1' "$("$DLOCK" run -k job --slots 2 -- sh -c \
  'echo "$DLOCK_SLOT $("$DLOCK" run -k other -- sh -c "echo \${DLOCK_SLOT-none}") $DLOCK_SLOT"')" "DLOCK_SLOT of nested runs"
unset DLOCK_SLOT
