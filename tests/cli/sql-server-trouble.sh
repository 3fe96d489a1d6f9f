#!/usr/bin/env bash
# ctest: every sql backend
# ctest: cost 25
# A database server that stops for less than the margin costs a warning; one that stays silent ends the job
# before anybody else can hold the lock.  Of a connection that is killed, and of a restart, nobody notices anything but who
# reads the warnings; with mysql-row and postgres-row a restart ends the job.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trouble.sh"
. "$(dirname "$0")/backends.sh"

kind=${backend%-*}
case $kind in
  mysql)
    port=${mysql_port[server]}
    # The session that has the lock.
    session() { sql server "SELECT IS_USED_LOCK(CONCAT('dlock.', owner)) FROM dlock_locks WHERE $row"; }
    # still: how many ms the server will keep the lock, if it is a lease that it sees.
    still() { sql server "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) DIV 1000 FROM dlock_locks WHERE $row"; }
    kill_session() { sql server "KILL $1"; }
    ;;
  postgres)
    port=${postgres_port[server]}
    session() {
      sql server "SELECT pid FROM pg_locks, dlock_locks WHERE locktype = 'advisory' AND pg_locks.mode = 'ExclusiveLock'
          AND (classid::bigint << 32) | objid::bigint = ('x' || left(owner, 16))::bit(64)::bigint AND $row"
    }
    still() { sql server "SELECT (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint FROM dlock_locks WHERE $row"; }
    kill_session() { sql server "SELECT pg_terminate_backend($1)" >killed; }
    ;;
esac
row="name = 'job' AND role = 'holder'"
start_proxy p "$port"
another_session() { [[ $(session) != @(|NULL|"$killed") ]]; }
ends() { sql server "SELECT expires_at FROM dlock_locks WHERE $row"; }
renewed_after() { [[ $(ends) > $1 ]]; }
run_job 6s ./job.sh 7
sleep 1.2  # the keeper is there
survives_a_stop "$kind" server "$kind 127.0.0.1:$port: no answer within"

run_job 4s ./stubborn.sh
sleep 1.5
dies_of_a_stop "$kind" server $(($(still) + $(now_ms)))
expect_status 0 "$DLOCK" run -q -k job -w 30 -- true

# The same by the server's own word: it hears of the job no more, and gives the lock to the next.
what="the network swallows everything"
DLOCK_BACKEND=$backend://app@127.0.0.1:${proxy_port[p]}/test run_job 3s ./stubborn.sh
sleep 1.5
proxy p blackhole
expect_status 0 "$DLOCK" run -q -k job -w 30 -- flock -n oracle true
job_ends 79 "$what"
outcome_is lost "$what"
proxy p pass

what="the connection is killed"
run_job 6s ./job.sh 7
sleep 1.2
killed=$(session)
before=$(ends)
kill_session "$killed"
wait_until 6 renewed_after "$before"
assert_held job
wait_until 6 another_session  # the renewal was its first statement
# Those who wait are woken as before.
"$DLOCK" run -q -k job -- touch next &
next=$!
touch go
job_ends 7 "$what"
outcome_is completed "$what"
expect_status 0 wait $next
rm next
what="the server is restarted"
if [[ $backend == *-row ]]; then
  run_job 20s flock oracle sh -c 'touch started; exec sleep 1000'
  sleep 1.2
  stop_servers
  wait_until 6 flock -n oracle true  # the job is dead, and dlock tells the server so when that is back
  restart_servers
  lost 10000 "$what"
  expect_status 0 "$DLOCK" run -q -k job -w 10 -- true

  what="the server is restarted while one of two locks is waited for"
  "$DLOCK" run -q -k b -- sh -c 'touch has-b; exec sleep 1000' 2>/dev/null &
  wait_until 30 test -e has-b
  "$DLOCK" run -k a -k b --ttl 60 -- true 2>err &
  both=$!
  wait_until 30 grep -q 'waiting for "b"' err
  stop_servers
  sleep 5  # longer than a farewell
  restart_servers
  expect_status 0 wait $both
  assert_contains "$(<err)" 'taking all again' "$what"
  assert_lacks "$(<err)" 'waiting for "a"' "$what"
else
  run_job 20s ./job.sh 7
  sleep 1.2
  before=$(ends)
  restart_servers
  wait_until 20 renewed_after "$before"
  assert_held job
  touch go
  job_ends 7 "$what"
  outcome_is completed "$what"
  assert_free job
fi
