#!/usr/bin/env bash
# "dlock watch" needs no right but those of "dlock list": a user who may write nothing on a Redis server is not even
# refused once.  Nobody who holds a lock or waits for it is kept from anything.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
start_redis server
export DLOCK_BACKEND=${redis_url[server]}
hold --ttl 30s
"$DLOCK" run -q -k job -- touch second &
waiter=$!
waits() { [[ $("$DLOCK" list -o waiting | tail -n 1) == 1 ]]; }
wait_until 30 waits

rcli server ACL SETUSER looker on '>secret' '~*' '+@all' '-@write' '-@admin' '-@dangerous' '-@pubsub' '+pubsub' >/dev/null
(umask 077 && echo secret >password)
as_looker=(-b "${redis_url[server]/:\/\//:\/\/looker@}" --password-file "$tmp/password")
"$DLOCK" list "${as_looker[@]}" >out 2>&1 || fail "the list: $(<out)"
"$DLOCK" run -q -n "${as_looker[@]}" -k other -- true 2>err && fail "this user can acquire a lock"
rcli server ACL LOG RESET >/dev/null
rcli server CONFIG RESETSTAT >/dev/null

"$DLOCK" watch --interval 1 "${as_looker[@]}" >lines 2>err &
watch=$!
"$DLOCK" watch --interval 1 "${as_looker[@]}" --exit-when free job 2>>err &
free=$!
looks() { (($(rcli server INFO commandstats | sed -n 's/^cmdstat_scan:calls=\([0-9]*\).*/\1/p') >= 6)); }
wait_until 30 looks
assert_equal 'present waiting' "$(awk '{ print $2 }' lines | xargs)" "what was seen"
release
wait "$waiter"
expect_status 0 wait "$free"
kill -TERM "$watch"
expect_status 0 wait "$watch"
assert_equal '' "$(<err)$(rcli server ACL LOG)" "what was refused"
[[ -e second ]] || fail "the waiter did not get the lock"
