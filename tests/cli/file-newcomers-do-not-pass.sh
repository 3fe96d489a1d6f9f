#!/usr/bin/env bash
# ctest: cost 15
# A living waiter behind one that is stopped gets the lock although others want it all the time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

# Side by side: the modes of the waiter and of those that come later.
modes=(exclusive:exclusive --shared:exclusive exclusive:--shared)
options() { [[ $1 == exclusive ]] || echo "$1"; }
newcomers() {  # KEY OPTION...
  until [[ -e over ]]; do "$DLOCK" run -q -k "$1" "${@:2}" -- sleep 0.5; done
}
for mode in "${modes[@]}"; do
  holder "a$mode" -k "job$mode"
  waiter "first$mode" "job$mode"
  freeze "first$mode"
  # shellcheck disable=SC2046  # an option, or none
  waiter "second$mode" "job$mode" $(options "${mode%:*}")
done
finish "${modes[@]/#/a}"
loops=()
for mode in "${modes[@]}"; do
  # shellcheck disable=SC2046
  newcomers "job$mode" $(options "${mode#*:}") &
  loops+=($!)
done
for mode in "${modes[@]}"; do wait_until 40 test -e "second$mode.held"; done
touch over
finish "${modes[@]/#/second}"
wait "${loops[@]}"
for mode in "${modes[@]}"; do
  thaw "first$mode"
  runs "first$mode"
done
finish "${modes[@]/#/first}"
