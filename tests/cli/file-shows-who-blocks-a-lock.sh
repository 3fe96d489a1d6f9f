#!/usr/bin/env bash
# Nothing is shown as free, or left out of the list, while somebody keeps others from getting it: not a lock
# whose holder was broken but is stopped, nor one whose lock file we may not read.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need pgrep setpriv

# stop NAME: the supervisor of this dlock, until ./over is there, however the test ends.
stop() {
  local supervisor
  supervisor=$(pgrep -o -P "${pid[$1]}")
  kill -STOP "$supervisor"
  (trap 'kill -CONT "$supervisor"' EXIT; trap 'exit 0' TERM; until test -e over; do sleep 0.1; done) &
}
# id NAME: of its grant.
id() { head -c 12 "$1.token"; }

# One that is broken and does not let go is in the way, also when the other has ended.
holder a -k job --shared
holder b -k job --shared
stop a
expect_status 69 "$DLOCK" force-release --yes --connect-timeout 0.5 --id "$(id a)" job 2>err
assert_contains "$(<err)" "pid ${pid[a]}, was told to let go but does not answer"
finish b
assert_held job
expect_status 0 "$DLOCK" show job >out
assert_contains "$(<out)" ", pid ${pid[a]}," "who is in the way, in show"
"$DLOCK" list >out
assert_contains "$(<out)" " ${pid[a]} " "who is in the way, in the list"
expect_status 69 "$DLOCK" force-release --yes --connect-timeout 0.5 job 2>err
assert_contains "$(<err)" "pid ${pid[a]}, was told to let go but does not answer"
touch over
ends 79 a
expect_status 1 "$DLOCK" show job >out
rm over

# Of three the first does not let go: the others are broken all the same.
for name in c d e; do holder $name -k job --shared; done
stop c
expect_status 69 "$DLOCK" force-release --yes --connect-timeout 0.5 job 2>err
assert_contains "$(<err)" "pid ${pid[c]}, was told to let go but does not answer"
ends 79 d e
touch over
ends 79 c

# In a directory of several users.
((EUID == 0)) || exit 0
mkdir -m 1777 common
chmod 1777 common
chmod 711 "$tmp"
cp -- "$DLOCK" dlock
export DLOCK_BACKEND=file://$tmp/common
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$tmp/dlock")
"${nobody[@]}" version >/dev/null 2>&1 || exit 0  # $tmp is noexec
holder f -k secret
expect_status 0 "${nobody[@]}" show secret >out
assert_contains "$(<out)" ", pid ${pid[f]}," "the lock of another user, in show"
"${nobody[@]}" list >out
assert_contains "$(<out)" " ${pid[f]} " "the lock of another user, in the list"
chmod 600 common/secret
expect_status 0 "${nobody[@]}" show secret >out
chmod 0700 common/secret~w
expect_status 77 "${nobody[@]}" show secret 2>err
got=0
"${nobody[@]}" list >out 2>&1 || got=$?
[[ $(<out) == *secret* ]] || fail "a lock that another user holds is not mentioned: $(<out)"
chmod 1777 common/secret~w
finish f
