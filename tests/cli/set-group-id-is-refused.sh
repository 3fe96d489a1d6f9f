#!/usr/bin/env bash
# A set-group-ID or set-user-ID copy of dlock would hand these rights to each command: it is refused.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
mkdir -m 755 "$tmp/bin"
cp -- "$DLOCK" "$tmp/bin/dlock"
as_eve=(setpriv --reuid "${uid[eve]}" --regid "${uid[eve]}" --clear-groups)
mkdir -m 1777 "$tmp/locks-of-all"
run=("$tmp/bin/dlock" run -b "file://$tmp/locks-of-all" -k job -- touch ran)
"${as_eve[@]}" "${run[@]}"
rm ran
for mode in 2755 4755; do
  chgrp $team "$tmp/bin/dlock"
  chmod $mode "$tmp/bin/dlock"
  "${as_eve[@]}" "$tmp/bin/dlock" version >/dev/null 2>&1 && [[ $(findmnt -no OPTIONS -T "$tmp") == *nosuid* ]] && skip "nosuid"
  expect_status 77 "${as_eve[@]}" "${run[@]}" 2>err
  assert_contains "$(<err)" "must not be set-user-ID or set-group-ID" "mode $mode"
  # The shell that evaluates it must not go on.
  "${as_eve[@]}" "$tmp/bin/dlock" acquire -b "file://$tmp/locks-of-all" -k job --while $$ --export >out 2>err || true
  expect_status 77 bash -c "$(<out)"
  [[ ! -e ran ]] || fail "the command was run with mode $mode"
done
