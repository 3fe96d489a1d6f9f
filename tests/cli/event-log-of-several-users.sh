#!/usr/bin/env bash
# An event log of another user is refused, unless it is root's, or the group may write to it and not everybody: so a
# machine can have one for all jobs of a group.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
. "$(dirname "$0")/users.sh"
unset DLOCK_EVENT_LOG
for user in root alice bob eve; do install -d -m 700 -o "${uid[$user]}" "$tmp/$user-locks"; done

# of FILE USER MODE: makes it, with alice's and bob's group.
of() {
  rm -f "$1"
  install -m "$3" -o "${uid[$2]}" -g $team /dev/null "$1"
}
# tries STATUS USER FILE
tries() {
  expect_status "$1" "${!2}" run -q -k job -b "file://$tmp/$2-locks" --event-log "$tmp/work/$3" -- true 2>err
}

of log root 660
tries 0 alice log
tries 0 bob log
tries 0 root log
tries 64 eve log
assert_contains "$(<err)" 'Permission denied'
check_log log
assert_equal 3 "$(grep -c released log)" "runs"

of log alice 660  # the first job has made it
for user in alice bob root; do tries 0 $user log; done
check_log log

of log eve 666
for user in alice root; do
  tries 64 $user log
  assert_contains "$(<err)" "belongs to user ${uid[eve]}: give another path"
done
of log eve 644
tries 64 root log
assert_equal '' "$(<log)" "the log of eve"

mkfifo -m 666 fifo
chown "${uid[eve]}" fifo
exec {eves}<>fifo
tries 64 alice fifo
exec {eves}>&-
