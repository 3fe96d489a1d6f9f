#!/usr/bin/env bash
# A waiter whose helper process, which waits in the kernel, is killed goes on waiting, and gets the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need pgrep

for mode in '' --shared --slots=1; do
  holder a -k job ${mode/--shared/}
  waiter b job ${mode:+"$mode"}
  [[ $mode != --slots=1 ]] || waiter c job ${mode:+"$mode"}  # behind b, which waits without a helper
  for name in b ${mode:+c}; do
    [[ -n ${pid[$name]-} ]] || continue
    helper=$(pgrep -x "dlock-${pid[$name]}") || continue
    kill -KILL "$helper"
    has_another() { [[ $(pgrep -x "dlock-${pid[$name]}") == [0-9]* ]]; }
    wait_until 10 has_another
  done
  finish a
  runs b
  finish b
  [[ $mode != --slots=1 ]] || finish c
done
