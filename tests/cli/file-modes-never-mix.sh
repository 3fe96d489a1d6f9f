#!/usr/bin/env bash
# Shared and slots never run together, also if somebody deletes the latch while a lock is being granted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need strace

"$DLOCK" run -k job --shared -- true  # so that the mode is the wanted one
cat >shared <<'SH'
#!/bin/sh
[ ! -e slots.held ] || touch overlap
SH
chmod +x shared
# Its fourth flock(2) is that of the mode; it is late.
strace -f -qq -o trace -e trace=flock -e inject=flock:delay_enter=3000000:when=4 \
  "$DLOCK" run -q -k job --shared -- ./shared &
late=$!
latched() { [[ -e trace ]] && (($(grep -c 'flock(.* = 0$' trace) >= 3)); }
wait_until 30 latched
rm "$locks/job~latch"
holder slots -k job --slots 2
got=0
wait $late || got=$?
[[ $got == 64 || $got == 69 ]] || fail "the other mode ends with status $got"
[[ ! -e overlap ]] || fail "OVERLAP: shared beside slots"
finish slots
