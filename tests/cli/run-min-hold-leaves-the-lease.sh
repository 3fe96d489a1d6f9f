#!/usr/bin/env bash
# ctest: every backend
# With --min-hold the caller is back at once and nobody stays behind for longer than needed: where a
# lock outlives its holder for a ttl, the service keeps it, and frees it by itself.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
[[ ${trait[ends_on]} != exit ]] || exit 0  # see run-min-hold.sh

mark=dlock-min-hold-$$
none_left() { [[ -z $(grep -lzsxF "MARK=$mark" /proc/[0-9]*/environ || true) ]]; }

# held OPTIONS: whether the status is there before the lock is free, and when that is after the start.
held() {
  local begun got=0
  begun=$(now_ms)
  env MARK="$mark" "$DLOCK" run -k job "$@" -- sh -c 'exit 7' || got=$?
  assert_equal 7 "$got" "exit status with $*"
  assert_held job
  "$DLOCK" run -q -k job -w 60 -- true
  took=$(($(now_ms) - begun))
}

# Nothing outlives its holder there: somebody stays until it is time.
if ends_at_once; then
  for kind in '' --shared; do
    held --ttl 2s --min-hold 3 ${kind:+"$kind"}
    ((took >= 3000)) || fail "free after $took ms, with --min-hold 3 $kind"
    ((took < 15000)) || fail "free after $took ms only, with --min-hold 3 $kind"
    wait_until 10 none_left
  done
  exit
fi

# The lease that there is is long enough: nobody stays.
env MARK="$mark" "$DLOCK" run -k other --ttl 60s --min-hold 3 -- true
wait_until 10 none_left
assert_held other

# It is not: it is renewed until it is.
held --ttl 2s --min-hold 3
none_left || fail "somebody stayed when the lock was free again"
((took >= 3000)) || fail "free after $took ms, with --min-hold 3"
((took < 15000)) || fail "free after $took ms only, with --min-hold 3 and --ttl 2s"

held --ttl 2s --min-hold 3 --shared
((took >= 3000)) || fail "free after $took ms, with --min-hold 3 --shared"

# Nothing ran, nothing to keep the lock for.
try 127 -q -k job --min-hold 300 -- "$tmp/missing"
assert_free job
