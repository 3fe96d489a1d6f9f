#!/usr/bin/env bash
# ctest: every mysql backend
# ctest: cost 25
# A MySQL server that stops for less than the margin costs a warning; one that stays silent ends the job
# before anybody else can hold the lock.  A connection that is killed and a restart end the job with
# mysql-row, at once, and with the others nobody notices but who reads the warnings.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/trouble.sh"
. "$(dirname "$0")/backends.sh"

start_proxy p "${mysql_port[server]}"

# The session that has the lock.
session() { sql server "SELECT IS_USED_LOCK(CONCAT('dlock.h.', owner)) FROM dlock_locks WHERE name = 'job' AND kind = 0"; }
another_session() { [[ $(session) != @(NULL|"$killed") ]]; }
# still: how many ms the server will keep the lock, if it is a lease that it sees.
still() {
  sql server "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) DIV 1000 FROM dlock_locks
         WHERE name = 'job' AND kind = 0"
}
beats() { sql server "SELECT beats FROM dlock_locks WHERE name = 'job' AND kind = 0"; }
renewed_after() { (($(beats) > $1)); }
run_job 6s ./job.sh 7
sleep 1.2  # the keeper is there
survives_a_stop mysql server "mysql 127.0.0.1:${mysql_port[server]}: no answer within"

run_job 4s ./stubborn.sh
sleep 1.5
end=4000  # it heard of a row lock before now
[[ $backend == mysql-row ]] || end=$(still)
dies_of_a_stop mysql server $((end + $(now_ms)))
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
if [[ $backend == mysql-row ]]; then
  run_job 60s ./stubborn.sh
  sleep 1.2
  sql server "KILL $(session)"
  lost 10000 "$what"  # SIGKILL after --kill-after
  assert_contains "$(<err)" 'the row lock ended with the connection' "stderr when $what"
  run_job 60s sh -c 'touch started; exec sleep 1000'
  sleep 1.2
  sql server "KILL $(session)"
  lost 2000 "$what"
else
  run_job 6s ./job.sh 7
  sleep 1.2
  killed=$(session)
  before=$(beats)
  sql server "KILL $killed"
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
fi

what="the server is restarted"
if [[ $backend == mysql-row ]]; then
  run_job 60s sh -c 'touch started; exec sleep 1000'
  sleep 1.2
  stop_mysql server
  lost 6000 "$what"
  restart_mysql server
  assert_free job
else
  run_job 20s ./job.sh 7
  sleep 1.2
  before=$(beats)
  restart_mysql server
  wait_until 20 renewed_after "$before"
  assert_held job
  touch go
  job_ends 7 "$what"
  outcome_is completed "$what"
  assert_free job
fi
