#!/usr/bin/env bash
# ctest: cost 10
# Not on a terminal, "dlock watch" reports an outage once and goes on, tells what has changed meanwhile, and waits for a
# server that does not answer at the start.  It ends with the status of "dlock list" if the first look is refused.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
start_redis server appendonly yes
export DLOCK_BACKEND=${redis_url[server]} DLOCK_CONNECT_TIMEOUT=1

"$DLOCK" run -q -k job -- sh -c 'touch held; until test -e go; do sleep 0.02; done' &
holder=$!
wait_until 30 test -e held
"$DLOCK" watch --interval 1 >lines 2>>err &
watch=$!
has() { grep -qs -- "$2" "$1"; }
wait_until 30 has lines '  present  job  '

for kind in gone silent; do
  : >err
  if [[ $kind == gone ]]; then stop_redis server; else pause_redis server; fi
  wait_until 30 has err '127.0.0.1'
  "$DLOCK" watch --interval 1 >late 2>late.err &
  late=$!
  wait_until 30 has late.err '127.0.0.1'
  sleep 2.5
  if [[ $kind == gone ]]; then restart_redis server; else resume_redis server; fi
  wait_until 30 has late '  present  job  '
  kill -TERM "$late"
  expect_status 0 wait "$late"
  assert_equal 1 "$(grep -c . err)" "messages of an outage ($(<err))"
  assert_equal 1 "$(grep -c . late.err)" "messages of an outage at the start ($(<late.err))"
  assert_equal 1 "$(grep -c . lines)" "changes through an outage ($(<lines))"
done
stop_redis server
touch go
sleep 1
restart_redis server
rcli server FLUSHALL >/dev/null
wait_until 30 has lines '  gone  job  '
wait "$holder" || true
kill -TERM "$watch"
expect_status 0 wait "$watch"

rcli server CONFIG SET requirepass secret >/dev/null
expect_status 77 timeout 20 "$DLOCK" watch >out 2>err
assert_contains "$(<err)" 'password'
expect_status 77 timeout 20 "$DLOCK" watch --exit-when free job >out 2>err
