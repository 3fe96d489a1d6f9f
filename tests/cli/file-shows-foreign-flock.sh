#!/usr/bin/env bash
# A lock that flock(1) took on a lock file is listed and shown, with the process that has it; force-release
# says that it cannot break it, and leaves it alone.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need flock python3

# taken MODE: flock(1) holds "job" in this mode until its process, $taker, is killed.
taken() {
  rm -f taken
  flock "$1" "$locks/job" sh -c 'touch taken; exec sleep 1000' &
  taker=$!
  wait_until 30 test -e taken
}
# leave: it does, with what it started.
leave() {
  kill "$(pgrep -P "$taker")"
  wait "$taker" || true
}

at_exit() { [[ -z ${taker-} ]] || pkill -P "$taker" || true; }

for mode in exclusive shared; do
  taken "--$mode"
  "$DLOCK" show --json job >out
  python3 - out "$taker" "$mode" "$(uname -n)" "$(id -un)" <<'PY' || fail "the lock as JSON: $(<out)"
import json, sys
name, taker, mode, host, user = sys.argv[1:]
lock = json.load(open(name))
assert (lock['mode'], lock['slots'], lock['waiters']) == (mode, 1, []), lock
assert lock['holders'] == [dict(id=None, kind=None, host=host, pid=int(taker), user=user, command='flock',
                                label=None, acquired_at=None, held_ms=None, expires_in_ms=None,
                                expires_at=None, fence=None, slot=None,
                                foreign='flock')], lock
PY
  assert_equal "KEY PID TAKEN BY job $taker flock" "$("$DLOCK" list -o key,pid,foreign | xargs)" "the list"
  "$DLOCK" show job >out
  grep -qx "  Holder    $(id -un) on $(uname -n), pid $taker, flock, not dlock" out || fail "show: $(<out)"

  for id in '' '--id 0123' '--older-than 0'; do
    # shellcheck disable=SC2086  # words
    expect_status 1 "$DLOCK" force-release --yes $id job >out 2>err
    assert_equal '1/' "$(wc -l <err)/$(<out)" "lines on stderr, and stdout, of force-release $id ($(<err))"
    assert_contains "$(<err)" "by $(id -un) on $(uname -n), pid $taker (flock)" "force-release $id"
  done
  expect_status 1 "$DLOCK" force-release --yes job 2>err
  assert_contains "$(<err)" 'not through dlock, which cannot break it' "force-release"
  ! gone "$taker" || fail "flock(1) was ended"
  assert_held job

  waiter a job
  assert_contains "$("$DLOCK" show job)" ', 1 waiting' "who waits for flock(1)"
  leave
  wait_until 30 test -e a.held
  finish a
  expect_status 1 "$DLOCK" show job >out
done

# It shares with a dlock: that one can be broken.
taken --shared
holder b -k job --shared
"$DLOCK" list -o pid,foreign job >out
assert_equal "$(printf '%s\n' "$taker flock" "${pid[b]} -" | sort)" "$(sed '1d;s/  */ /g' out | sort)" \
  "who shares the lock"
"$DLOCK" force-release --yes job 2>err
ends 79 b
assert_contains "$(<err)" "by $(id -un) on $(uname -n), pid ${pid[b]} (job)); now held by $(uname -n | cut -d. -f1) pid $taker" "force-release"
assert_equal "PID $taker" "$("$DLOCK" list -o pid job | xargs)" "who is left"
leave

# As in "exec 9>file; flock 9": the process that took it is gone, and the lock is held all the same.
"$DLOCK" run -k idiom -- true
for file in idiom new; do
  exec {held}>>"$locks/$file"
  flock "$held"
  for command in 'list -o foreign' 'show -o foreign'; do
    # shellcheck disable=SC2086  # words
    assert_equal 'TAKEN BY flock' "$("$DLOCK" $command $file | xargs)" "$command $file"
  done
  expect_status 1 "$DLOCK" force-release --yes $file 2>err
  assert_contains "$(<err)" 'not through dlock, which cannot break it' "force-release"
  exec {held}>&-
  expect_status 1 "$DLOCK" show $file >out
done
