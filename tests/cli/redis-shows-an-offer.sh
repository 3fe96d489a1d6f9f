#!/usr/bin/env bash
# A lock that is kept for the next waiter is free, and show says for whom it is kept.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/backends.sh"

start_redis a
export DLOCK_BACKEND=${redis_url[a]}
holder held -k job
waiter stopped job
waits() { "$DLOCK" show job | grep -q '1 waiting'; }
wait_until 30 waits
# So that it stays as it is, until it has been looked at.
id=$(rcli a --scan --pattern '{dlock:job}:waiter:*')
id=${id##*:}
record=$(rcli a get "{dlock:job}:waiter:$id")
freeze stopped
finish held
rcli a set dlock:job "$id" px 60000 >ok
rcli a set '{dlock:job}:owner' "$record" px 60000 >ok

expect_status 1 "$DLOCK" show job >shown
host=$(uname -n)
assert_equal "job: free (offered to $host pid ${pid[stopped]}), 1 waiting" "$(head -n 1 shown)" "the first line"
expect_status 1 "$DLOCK" show --json job >json
assert_contains "$(tr -d ' \n' <json)" '"holders":[]' "the holders"
assert_contains "$(tr -d ' \n' <json)" '"offered":true' "the waiter"
expect_status 75 "$DLOCK" run -q -n -k job -- true

# The waiter takes what it was offered.
thaw stopped
has_it() { "$DLOCK" show job | grep -q "pid ${pid[stopped]}.*dlock run"; }
wait_until 30 has_it
assert_lacks "$("$DLOCK" show --json job)" offered "a holder"
finish stopped
