#!/usr/bin/env bash
# When the lock directory is renamed away and there is a new one, a holder ends its command with 79, and those that wait
# go on in the new directory: one of them gets the lock there, and then the next.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3 flock

# replace [DIRECTORY]: puts this one, or a new one, in the place of the lock directory, without a moment between.
replace() {
  rm -rf "$locks.old"
  (($#)) || mkdir -m 0700 "$locks.new"
  python3 - "$locks" "${1:-$locks.new}" <<'PY'
import ctypes, os, sys

AT_FDCWD, RENAME_EXCHANGE = -100, 2
here, there = map(os.fsencode, sys.argv[1:])
if ctypes.CDLL(None).renameat2(AT_FDCWD, there, AT_FDCWD, here, RENAME_EXCHANGE):
    sys.exit("cannot exchange them")
os.rename(there, here + b".old")
PY
}
# in_turn NAME...: these get the lock, one at a time, and end well.
any_of() {
  local name
  for name in "$@"; do
    [[ ! -e $name.held ]] || return 0
    ! gone "${pid[$name]}" || fail "$name has ended without the lock: $(<"$name.err")"
  done
  return 1
}
in_turn() {
  local left=("$@") name held others
  while ((${#left[@]})); do
    wait_until 60 any_of "${left[@]}"
    held=() others=()
    for name in "${left[@]}"; do
      if [[ -e $name.held ]]; then held+=("$name"); else others+=("$name"); fi
    done
    ((${#held[@]} == 1)) || fail "OVERLAP: these hold the lock at once: ${held[*]}"
    expect_status 75 "$DLOCK" run -q -n -k job ${slot:+"$slot"} -- true
    assert_equal "PID ${pid[${held[0]}]}" "$("$DLOCK" list -o pid job | xargs)" "the holder in the new directory"
    finish "${held[0]}"
    left=("${others[@]}")
  done
}

for mode in '' --shared --slots=1; do
  holder a -k job ${mode:+"$mode"}
  # An exclusive waiter, or for the same slot.
  slot=${mode/--shared/}
  waiter quiet job -q ${slot:+"$slot"}
  waiter patient job -q -w 1h ${slot:+"$slot"}
  waiter talks job ${slot:+"$slot"}
  replace
  ends 79 a
  assert_contains "$(<a.err)" "was replaced" "what the holder says, ${mode:-exclusive}"
  gone "$(<a.pid)" || fail "the command of the holder goes on"
  in_turn quiet patient talks
  assert_equal '' "$(<quiet.err)" "what a quiet waiter says"
  [[ -f $locks/job ]] || fail "there is no lock file in the new directory"
done

# Those that wait to share.
holder a -k job
waiter quiet job -q --shared
waiter talks job --shared
replace
ends 79 a
runs quiet
runs talks
finish quiet talks

# Somebody holds the lock in the new directory already: they wait for him.
mkdir -m 0700 "$tmp/next"
"$DLOCK" run -k job -b "file://$tmp/next" -- true
flock "$tmp/next/job" sh -c 'touch taken; until test -e leave; do sleep 0.02; done' &
wait_until 30 test -e taken
holder a -k job
waiter quiet job -q
replace "$tmp/next"
ends 79 a
waits_there() { (($(waiting job) == 1)); }
wait_until 60 waits_there
[[ ! -e quiet.held ]] || fail "OVERLAP: a waiter got the lock that flock(1) holds in the new directory"
touch leave
runs quiet
finish quiet
