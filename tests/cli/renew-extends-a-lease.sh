#!/usr/bin/env bash
# "dlock renew" makes the lease of "dlock acquire --ttl" last for its ttl from now, or for another one, and never
# takes a lock again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need python3

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]} DLOCK_QUIET=1
eval "$("$DLOCK" acquire --export -k job --ttl 10m)"

# lasts SECONDS: the lease does, from now.
lasts() {
  local left
  left=$(rcli a pttl dlock:job)
  ((left <= $1 * 1000 && left > $1 * 1000 - 60000)) || fail "the lease lasts $left ms, not $1 s"
}
lasts 600
expect_status 0 "$DLOCK" renew -k job --ttl 1h >out
assert_equal '' "$(<out)"
lasts 3600
# Without --ttl it is that of the grant, whatever is set for runs.
DLOCK_TTL=2h expect_status 0 "$DLOCK" renew -k job
lasts 600
expect_status 0 "$DLOCK" renew -k job --ttl 2m --json >out
lasts 120
python3 - "$DLOCK_TOKEN" "$DLOCK_FENCE" <<'PY'
import datetime, json, sys
grant = json.load(open('out'))
assert list(grant) == ['key', 'token', 'fence', 'slot', 'expires'], grant
assert [grant[name] for name in grant][:4] == ['job', sys.argv[1], int(sys.argv[2]), None], grant
now = datetime.datetime.now(datetime.timezone.utc)
left = (datetime.datetime.fromisoformat(grant['expires'][:-1] + '+00:00') - now).total_seconds()
assert 60 < left <= 120, grant
PY
for ttl in 0 25h soon ''; do
  expect_status 64 "$DLOCK" renew -k job --ttl "$ttl" 2>err
  assert_contains "$(<err)" '--ttl'
done
lasts 120

# Only the lock that was acquired, once it has expired, was broken or was released.
"$DLOCK" acquire -k brief --ttl 1s >token
chmod 600 token
wait_until 30 is_free brief
expect_status 79 "$DLOCK" renew -k brief --token-file token >out 2>err
assert_equal "/dlock: lost \"brief\": this lock id does not hold it any more (released, expired or broken); it is free in \
${redis_url[a]}/0" "$(<out)/$(<err)"
assert_free brief
"$DLOCK" force-release --yes job >out 2>&1
expect_status 79 "$DLOCK" renew -k job 2>err
assert_free job
hold -n
expect_status 79 "$DLOCK" renew -k job 2>err
assert_contains "$(<err)" "it is held by $(id -un) on $(uname -n), pid $holder (bash), for "
release

# What the service does not answer is no loss.
eval "$("$DLOCK" acquire --export -k job --ttl 10m)"
stop_redis a
for command in renew release; do
  expect_status 69 "$DLOCK" "$command" -k job --connect-timeout 0.2 2>err
  assert_contains "$(<err)" 'connection refused'
done
