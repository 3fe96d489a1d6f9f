#!/usr/bin/env bash
# "dlock watch --exit-when free KEY" ends with 0 when the lock is free, prints nothing, and never has the lock.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

expect_status 0 timeout 20 "$DLOCK" watch --exit-when free job >out 2>&1
assert_equal '' "$(<out)" "a lock that is free"

hold --ttl 30s
"$DLOCK" run -k job2 -- sleep 1000 &
expect_status 124 timeout 3 "$DLOCK" watch --exit-when free --interval 1 job >out 2>&1
assert_equal '' "$(<out)" "a lock that is held"

# Ended before, it must not look as if the lock were free: "dlock watch --exit-when free job && ./start".
expect_status 143 env --default-signal timeout --foreground --preserve-status 2 "$DLOCK" watch --exit-when free job
expect_status 130 env --default-signal timeout --foreground --preserve-status -s INT 2 "$DLOCK" watch --exit-when free job
{ expect_status 1 "$DLOCK" watch --exit-when free --json --interval 1h job; } | true

# A key that only begins with this one does not count, nor does what the holder has waiting.
"$DLOCK" run -q -n -k job -- true 2>/dev/null && fail "it is not held"
timeout 60 "$DLOCK" watch --exit-when free --interval 1 job >out 2>&1 &
watch=$!
timeout 60 "$DLOCK" watch --exit-when free --interval 1 --json job >objects 2>&1 &
watches=$!
synced() { grep -q synced objects; }
wait_until 30 synced
release
expect_status 0 wait "$watch"
expect_status 0 wait "$watches"
assert_equal '' "$(<out)" "a lock that becomes free"
assert_equal 'present synced gone' "$(sed 's/.*"event":"\([a-z]*\)".*/\1/' objects | xargs)" "with --json"
assert_held job2
