#!/usr/bin/env bash
# A waiter that gets a signal, whose time is over, or that is killed is not in the queue any more, and
# those behind it are served.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
queued() { [[ $(rcli a zcard '{dlock:job}:queue') == "$1" ]]; }
waiters() { [[ $(rcli a keys '{dlock:job}:waiter:*' | grep -c .) == "$1" ]]; }
mark=dlock-waiter-$$
none_left() { [[ -z $(grep -lzsxF "MARK=$mark" /proc/[0-9]*/environ || true) ]]; }

wait_as() { # OPTIONS
  env --default-signal MARK="$mark" "$DLOCK" run -k job "$@" -- touch ran 2>err &
  waiter=$!
  wait_until 30 queued 1
}
leaves() { # STATUS WHAT
  local got=0 begun=$EPOCHSECONDS
  wait "$waiter" || got=$?
  assert_equal "$1" "$got" "exit status of a waiter that $2 ($(<err))"
  queued 0 || fail "a waiter that $2 is still in the queue"
  waiters 0 || fail "LEFT BEHIND: the record of a waiter that $2"
  none_left || fail "LEFT BEHIND: a process of a waiter that $2"
  ((EPOCHSECONDS - begun <= 10)) || fail "a waiter that $2 took $((EPOCHSECONDS - begun)) s"
}

for mode in '' --shared '--slots=1'; do
  read -ra options <<<"$mode"
  case $mode in --slots*) hold "$mode" ;; *) hold ;; esac
  for signal in TERM INT HUP QUIT; do
    wait_as "${options[@]}"
    kill -"$signal" "$waiter"
    leaves $((128 + $(kill -l "$signal"))) "got SIG$signal"
  done
  wait_as "${options[@]}" -w 1s
  leaves 75 'waited for as long as it was to'
  assert_contains "$(tail -n 1 err)" 'dlock: gave up after 1s: "job" is held by '
  wait_as "${options[@]}"
  { kill -KILL "$waiter" && wait "$waiter"; } 2>/dev/null || true
  wait_until 20 none_left
  wait_until 20 queued 0
  release
done
[[ ! -e ran ]] || fail "a waiter that left ran its command"

# Both of its processes at once: it cannot leave the queue, and is passed over.
hold
wait_as
read -r supervisor _ <"/proc/$waiter/task/$waiter/children" || true
"$DLOCK" run -q -k job -- touch served &
next=$!
wait_until 30 queued 2
{ kill -KILL "$waiter" "$supervisor" && wait "$waiter"; } 2>/dev/null || true
release
expect_status 0 wait "$next"
[[ -e served && ! -e ran ]] || fail "not the one was served that is alive"
queued 0 || fail "a dead waiter is still in the queue when the lock is free"
assert_equal 0 "$(rcli a exists dlock:job)" "whether the lock is held in the end"
