#!/usr/bin/env bash
# Shared and slots never run together, also if somebody deletes the registrations while a lock is being granted, or while
# it is held.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need flock strace

cat >shared <<'SH'
#!/bin/sh
[ ! -e slots.held ] || touch overlap
SH
chmod +x shared
# Its third pwrite(2) makes it a holder; it is late, with the folder of the registrations locked.
strace -f -qq -o trace -e trace=pwrite64 -e inject=pwrite64:delay_enter=3000000:when=3 \
  "$DLOCK" run -q -k job --shared -- ./shared &
late=$!
locked() { [[ -d $locks/job~w ]] && ! flock -n "$locks/job~w" true; }
wait_until 30 locked
rm -r "$locks/job~w"
holder slots -k job --slots 2
got=0
wait $late || got=$?
[[ $got == 64 || $got == 69 ]] || fail "the other mode ends with status $got"
[[ ! -e overlap ]] || fail "OVERLAP: shared beside slots"
finish slots

# A holder that has lost its registration to one of another kind, since it was stopped, ends its command.
holder late -k job --shared
freeze late
rm -r "$locks/job~w"
holder slots -k job --slots 2
thaw late
ends 79 late
assert_contains "$(<late.err)" "its registration was deleted" "stderr of the one that lost it"
finish slots
