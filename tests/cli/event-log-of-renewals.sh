#!/usr/bin/env bash
# ctest: cost 15
# Renewals that fail are in the event log, once for each outage, and the one that succeeds after that; no other is.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

start_redis server requirepass secret
start_proxy between "${redis_port[server]}"
export DLOCK_BACKEND=redis://:secret@127.0.0.1:${proxy_port[between]}
says() { [[ $(grep -c "\"event\":\"$1\"" log || true) == "${2:-1}" ]]; }

hold --ttl 6s --kill-after 0.5
sleep 2.5  # one renewal at least
proxy between refuse
proxy between cut
wait_until 30 says renew-failed
proxy between pass
wait_until 30 says renewed
proxy between refuse
proxy between cut
wait_until 30 says renew-failed 2
proxy between pass
wait_until 30 says renewed 2
release
check_log log
assert_equal $'acquired\nrenew-failed\nrenewed\nrenew-failed\nrenewed\nreleased' "$(events .event)"
jq -es 'map(select(.event == "renew-failed") | .left_ms > 0 and .left_ms <= 6000) | all' log >/dev/null || fail "left_ms: $(<log)"
assert_equal '' "$(jq -r 'select(.event == "renewed" and .after_ms > 30000)' log)" "after_ms"
assert_lacks "$(<log)" secret "the password"

# Lost, because no renewal succeeds.
rm log
hold --ttl 3s --kill-after 0.5
proxy between refuse
proxy between cut
expect_status 79 wait "$holder"
check_log log
assert_equal $'acquired\nrenew-failed\nending\nlost' "$(events .event)"
assert_contains "$(events .reason | tail -n 1)" 'no renewal succeeded for'

# The server cannot be reached.
rm log
try 69 -q -k job --wait 1 --connect-timeout 1 -- true
check_log log
assert_equal unreachable "$(events .event)"
assert_contains "$(events .error)" 'connection refused'
assert_equal "redis://:***@127.0.0.1:${proxy_port[between]}" "$(events .backend)"
