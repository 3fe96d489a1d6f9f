#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 12
# A run takes several locks: all or none, in one order for everybody.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
export DLOCK_BACKEND

run() { "$DLOCK" run -q "$@"; }

# The command finds the keys in the order in which they were given, and those of the first by themselves.
run -k b -k a -- env >vars
lines() { sed -n "/^$1=/,/^[A-Za-z_]*=/{s/^$1=//;/^[A-Za-z_]*=/!p}" vars; }
assert_equal $'b\na' "$(lines DLOCK_KEYS)"
assert_equal "$(sed -n 's/^DLOCK_KEY=//p' vars)" b
assert_equal "$(sed -n 's/^DLOCK_TOKEN=//p' vars)" "$(lines DLOCK_TOKENS | head -1)" "the first token"
assert_equal "$(sed -n 's/^DLOCK_FENCE=//p' vars)" "$(lines DLOCK_FENCES | head -1)" "the first fence"
assert_equal 2 "$(lines DLOCK_TOKENS | sort -u | wc -l)" "tokens"
assert_equal 2 "$(lines DLOCK_FENCES | wc -l)" "fences"

# The plurals are those of this run alone.
run -k a -k b -- "$DLOCK" run -q -k c -- env >vars
assert_equal c "$(lines DLOCK_KEYS)" "in a nested run of one key"

# Both are held while the command runs, and neither after it.
holder both -k b -k a
assert_held a
assert_held b
"$DLOCK" show --json a | grep -q '"pid": '"${pid[both]}"
"$DLOCK" show --json b | grep -q '"pid": '"${pid[both]}"
finish both
assert_free a
assert_free b

# All or none: whoever does not get the second leaves the first; the message names the one that is held.
holder other -k b
message=$("$DLOCK" run -n -k a -k b -- true 2>&1) && fail "got both"
assert_contains "$message" '"b" is held by'
assert_free a
message=$("$DLOCK" run -w 0.7 -k b -k a -- true 2>&1) && fail "got both"
assert_contains "$message" 'waiting for "b"'
assert_contains "$message" ', for at most 700ms'
assert_contains "$message" "details: dlock show -b $DLOCK_BACKEND"
assert_contains "$message" 'gave up after'
assert_free a

# While one is waited for, those before it, by the order of their bytes, are held; and renewed.
waiter two b -k c -k a --ttl 2
wait_until 30 is_held a
assert_free c
end=$((SECONDS + 4))
while ((SECONDS < end)); do assert_held a; done
finish other
runs two
assert_held b
assert_held c
finish two

# A waiter that is killed by a signal leaves nothing.
holder other -k b
waiter two b -k a
kill -TERM "${pid[two]}"
ends 143 two
assert_free a
finish other

# One that is held is broken while another is waited for: all is given back and taken again.
holder other -k b
waiter two b -k a
wait_until 30 is_held a
"$DLOCK" force-release --yes --reason "test of it" a >out 2>&1 || fail "cannot break a: $(<out)"
wait_until 30 grep -q 'lost "a" while waiting for "b".*test of it' two.err
wait_until 30 is_held a
is_waited_for() { [[ $(waiting "$1") == 1 ]]; }
wait_until 30 is_waited_for b
finish other
runs two
finish two

# One of two that are held is lost: the command ends, and the other one is free.
holder two -k a -k b
"$DLOCK" force-release --yes b >out 2>&1 || fail "cannot break b: $(<out)"
ends 79 two
assert_contains "$(<two.err)" 'lost "b": '
wait_until 30 is_free a
wait_until 30 is_free b

# The supervisor is killed: the command is dead, and the message names both.
holder two -k b -k a
child=$(<"/proc/${pid[two]}/task/${pid[two]}/children")
kill -KILL "${child%% *}"
ends 79 two
gone "$(<two.pid)" || fail "the command lives on"
assert_contains "$(<two.err)" 'lost "b" and "a": '
if ends_at_once; then
  wait_until 30 is_free a
  wait_until 30 is_free b
else
  "$DLOCK" force-release --yes a >out 2>&1
  "$DLOCK" force-release --yes b >out 2>&1
fi

# A nested run borrows those that are held above it, and takes the others.
run -k b -- sh -c '
  outer=$DLOCK_TOKEN
  "$DLOCK" run -q -k a -k b -k c -- sh -c "
    [ \"\$(echo \"\$DLOCK_TOKENS\" | sed -n 2p)\" = $outer ] || exit 3
    \"\$DLOCK\" run -q -n -k c -k b -k a -- true || exit 4
    env -u DLOCK_SUPERVISORS \"\$DLOCK\" run -q -n -k a -- true && exit 5
    exit 0" || exit
  "$DLOCK" run -q -n -k a -k c -- true || exit 6
  env -u DLOCK_SUPERVISORS "$DLOCK" run -q -n -k b -- true && exit 7
  exit 0' || fail "nested: status $?"
assert_free b

# All modes; a nested run of another mode is refused.
holder one --shared -k a -k b
expect_status 0 run --shared -n -k b -k a -- true
assert_held a
assert_held b
finish one
holder one --slots 2 -k a -k b
holder two --slots 2 -k b -k a
expect_status 75 run --slots 2 -n -k b -- true
finish one two

# --min-hold keeps them all.
run --min-hold 3 -k a -k b -- true
assert_held a
assert_held b
wait_until 30 is_free a
wait_until 30 is_free b

# --status-file is about the first.
run --status-file status -k b -k a -- true
assert_contains "$(<status)" '"key":"b"'

# Bad input.
message=$("$DLOCK" run -k a -k b -k a -- true 2>&1) && fail "takes a key twice"
assert_equal 'dlock: --key "a" is given twice' "$message"
expect_status 64 run -k a -k '' -- true 2>/dev/null
keys=()
for ((i = 0; i < 64; ++i)); do keys+=(-k "many$i"); done
expect_status 0 run "${keys[@]}" -- true
message=$("$DLOCK" run "${keys[@]}" -k more -- true 2>&1) && fail "takes 65 keys"
assert_equal 'dlock: --key is given 65 times; the most is 64' "$message"
