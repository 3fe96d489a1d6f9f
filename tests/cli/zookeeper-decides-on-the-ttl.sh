#!/usr/bin/env bash
# ctest: cost 15
# Where the servers grant less than --ttl, what follows from the ttl goes by theirs: the job is renewed in
# time, and has a quarter of it to end.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"

cd "$tmp"
start_zk short maxSessionTimeout=4000
export DLOCK_BACKEND=${zk_url[short]}

# As long as two of their ttls: without renewals it would be lost.
"$DLOCK" run -k job -- sleep 8 2>err || fail "status $? ($(<err))"
assert_contains "$(<err)" "grants a TTL of 4s instead of 30s"

# It may take longer than that only if the user knows.
"$DLOCK" run -k job --ttl 4s --kill-after 1.9s -- true || fail "status $?"
try 64 -k job --kill-after 10s -- touch ran
assert_contains "$(<err)" "grants a TTL of 4s: --kill-after 10s must be less than half of that"
[[ ! -e ran ]] || fail "the command was run"
"$DLOCK" run -n -k job -- true 2>err || fail "it was left locked: $(<err)"

# Nobody answers any more: the job, which does not care for SIGTERM, is dead before the session is over.
"$DLOCK" run -q -k job -- bash -c 'trap "" TERM; touch started
  while :; do echo "${EPOCHREALTIME/./}" >alive.new && mv alive.new alive; sleep 0.02; done' &
job=$!
wait_until 20 test -e started
sleep 1.5  # it is renewed from the first second on
kill -STOP "${zk_pid[short]}"
stopped=${EPOCHREALTIME/./}
expect_status 79 wait "$job"
took=$((($(<alive) - stopped) / 1000))
((took < 4000)) || fail "the job was alive for $took ms after the servers had stopped"
