#!/usr/bin/env bash
# ctest: cost 15
# A waiter for a slot that is stopped, with all its processes, holds up those behind it for some seconds, and not for ever;
# and nobody gives up while a slot is free.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

holder a -k job --slots 1
waiter first job --slots 1
waiter second job --slots 1
mapfile -t stopped < <(tree_of "${pid[first]}")
kill -STOP "${stopped[@]}"
finish a
expect_status 0 "$DLOCK" run -q -k job --slots 1 -w 2 -- true
wait_until 40 test -e second.held
finish second
kill -CONT "${stopped[@]}"
runs first
finish first
