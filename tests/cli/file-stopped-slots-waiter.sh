#!/usr/bin/env bash
# ctest: cost 15
# A waiter that is stopped, with all its processes, delays the waiters behind it by some seconds only, and no run gives up
# while the lock is free.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

# Side by side: the modes of the stopped waiter and of the others.
modes=(exclusive:exclusive exclusive:--shared --shared:--shared --slots=1:--slots=1)
options() { [[ $1 == exclusive ]] || echo "$1"; }
for mode in "${modes[@]}"; do
  first=${mode%:*} second=${mode#*:}
  # shellcheck disable=SC2046  # an option, or none
  holder "a$mode" -k "job$mode" $(options "${first/--shared/exclusive}")
  # shellcheck disable=SC2046
  waiter "first$mode" "job$mode" $(options "$first")
  # shellcheck disable=SC2046
  waiter "second$mode" "job$mode" $(options "$second")
  touch "second$mode.go"  # it may have the lock at any time
  freeze "first$mode"
done
finish "${modes[@]/#/a}"
for mode in "${modes[@]}"; do
  # shellcheck disable=SC2046
  wait_until 20 "$DLOCK" run -q -k "job$mode" $(options "${mode#*:}") -w 1 -- true
  # shellcheck disable=SC2046
  wait_until 5 "$DLOCK" run -q -k "job$mode" $(options "${mode#*:}") -n -- true
done
for mode in "${modes[@]}"; do wait_until 40 test -e "second$mode.held"; done
ends 0 "${modes[@]/#/second}"
for mode in "${modes[@]}"; do
  thaw "first$mode"
  runs "first$mode"
done
finish "${modes[@]/#/first}"
