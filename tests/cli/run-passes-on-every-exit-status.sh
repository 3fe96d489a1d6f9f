#!/usr/bin/env bash
# Each of the 256 exit statuses of the command comes out as dlock's own, without a word.
. "$(dirname "$0")/lib.sh"

for ((status = 0; status < 256; ++status)); do
  got=0
  "$DLOCK" run --key job -- sh -c "exit $status" >"$tmp/out" 2>&1 || got=$?
  ((got == status)) || fail "the command exited with $status, dlock with $got"
  [[ ! -s $tmp/out ]] || fail "the command exited with $status, and dlock said: $(<"$tmp/out")"
done

expect_status 0 "$DLOCK" run --nonblock --key job -- true
