#!/usr/bin/env bash
# ctest: soak
# ctest: cost 30
# A mysql-row lock ends with its connection, before the job of its holder has ended.  The next holder starts when the
# earlier one has ended its job and removed its record, or when the ttl of the earlier one is over; on the same
# machine when no process of it is left.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/trouble.sh"
need python3 pgrep
cd "$tmp"
mysql_backend row

# dlock run as on another machine: nobody can see whether its processes have ended.
elsewhere=(python3 "$TEST_SOURCE/tests/cli/forbid.py" socket:1 EPERM "$DLOCK" run)
rows() { sql server "SELECT COUNT(*) FROM dlock_locks"; }
no_row() { [[ $(rows) == 0 ]]; }

# Both processes of the holder, at a moment in which they can do nothing.
kill_holder() {
  local supervisor
  supervisor=$(pgrep -o -P "$holder")
  kill -STOP "$holder"
  kill -KILL "$supervisor" "$holder"
  wait "$holder" 2>/dev/null || true
}

# killed_elsewhere TTL: a holder on another machine is killed with all its processes, at $begun.
killed_elsewhere() {
  rm -f started
  "${elsewhere[@]}" -q -k job --ttl "$1" -- ./job.sh 2>err &
  holder=$!
  wait_until 20 test -e started
  kill_holder
  begun=$(now_ms)
}

# After SIGTERM it goes on until ./end is there.
cat >slow.sh <<'SH'
#!/bin/sh
exec 9<>oracle
flock -n 9 || exit 99
trap 'until test -e end; do sleep 0.02; done; exit 1' TERM
touch started
while :; do sleep 0.01; done
SH
chmod +x slow.sh

# first MODE: a holder on another machine, whose job, ./slow.sh, takes the oracle.
first() {
  rm -f started end oracle
  touch oracle
  # shellcheck disable=SC2086  # no word or two
  "${elsewhere[@]}" -k job --ttl 60s --kill-after 25s $1 -- ./slow.sh 2>err &
  holder=$!
  wait_until 20 test -e started
}
# next_starts_after_it MODE WHEN: the next one waits for that job, and starts when it has ended, long before the ttl of
# the holder is over.
next_starts_after_it() {
  local begun took next
  wait_until 20 grep -q 'lost "job"' err
  rm -f waits
  # shellcheck disable=SC2086
  "${elsewhere[@]}" -k job --ttl 60s $1 -- flock -n oracle true 2>waits &
  next=$!
  wait_until 20 grep -q 'waiting for "job".*slow.sh' waits
  ! flock -n oracle true || fail "the job had ended before ($2)"
  begun=$(now_ms)
  touch end
  expect_status 0 wait $next
  took=$(($(now_ms) - begun))
  echo "$2: the next one started $took ms after the job had ended"
  ((took < 15000)) || fail "the next one waited $took ms when $2"
  expect_status 79 wait "$holder"
  wait_until 20 no_row
}

for modes in '/' '--shared/' '/--shared' '--slots 1/--slots 1'; do
  first "${modes%/*}"
  stop_mysql server
  restart_mysql server
  if [[ $modes == '/' ]]; then
    wait_until 20 grep -q 'lost "job"' err
    expect_status 75 "${elsewhere[@]}" -q -n -k job -- flock -n oracle true
    expect_status 75 "${elsewhere[@]}" -q -w 0.3 -k job -- flock -n oracle true
    # It says for whom it waits, and leaves nothing when it gives up.
    "${elsewhere[@]}" -k job -- flock -n oracle true 2>waits &
    waiter=$!
    wait_until 20 grep -q 'waiting for "job".*slow.sh' waits
    kill -TERM $waiter
    expect_status 143 wait $waiter
  fi
  next_starts_after_it "${modes#*/}" "the server was killed ($modes)"
done

# The connection alone is killed.
first ''
sql server "KILL $(sql server "SELECT IS_USED_LOCK(CONCAT('dlock.h.', owner)) FROM dlock_locks")"
next_starts_after_it '' 'the connection was killed'

# A holder that hears nothing more ends its job within its ttl; the server drops it then, and starts to count its
# silence later than the holder.
start_proxy far "${mysql_port[server]}"
rm -f started oracle
touch oracle
DLOCK_BACKEND=${DLOCK_BACKEND/:${mysql_port[server]}/:${proxy_port[far]}} \
  "${elsewhere[@]}" -k job --ttl 4s --kill-after 1s -- ./stubborn.sh 2>err &
holder=$!
wait_until 20 test -e started
proxy far blackhole
stop_mysql server
restart_mysql server
begun=$(now_ms)
expect_status 0 "${elsewhere[@]}" -q -k job -w 40 -- flock -n oracle true
echo "the holder was cut off: the next one waited $(($(now_ms) - begun)) ms"
expect_status 79 wait $holder
proxy far pass
wait_until 20 no_row

# Killed on another machine, with all its processes: its ttl is over after the next one's grant, not before.
killed_elsewhere 3s
expect_status 0 "${elsewhere[@]}" -q -k job -w 40 -- true
took=$(($(now_ms) - begun))
((took >= 2900)) || fail "the next one did not wait for a holder of whose end nobody knows: $took ms"
wait_until 20 no_row

# Those that do not wait get it, too, although none of them waits for a ttl.  What they wait for is shown meanwhile.
killed_elsewhere 6s
shows_the_end() { "$DLOCK" show job | grep -q 'the connection of .* has ended'; }
wait_until 20 shows_the_end
expect_status 75 "${elsewhere[@]}" -q -n -k job -- true
assert_contains "$("$DLOCK" list)" job.sh
wait_until 20 "${elsewhere[@]}" -q -n -k job -- true
took=$(($(now_ms) - begun))
((took >= 5900)) || fail "those that do not wait got it after $took ms"
wait_until 20 no_row
expect_status 1 "$DLOCK" show job >shown

# On the same machine the kernel says that nothing of the holder is left.
run_job 60s ./job.sh
kill_holder
begun=$(now_ms)
expect_status 0 "$DLOCK" run -q -k job -w 40 -- true
took=$(($(now_ms) - begun))
echo "killed on the same machine: the next one waited $took ms"
((took < $(here 3000))) || fail "the next one waited $took ms for a holder that had ended"
wait_until 20 no_row

# A nested run that borrowed the lock ends its job although all of the lender's own processes have been killed; until
# then nobody has the lock.
rm -f started oracle
touch oracle
"$DLOCK" run -q -k job --ttl 60s -- \
  sh -c 'setsid "$DLOCK" run -q -k job --kill-after 2s -- ./stubborn.sh & wait' 2>err &
holder=$!
wait_until 20 test -e started
kill_holder
expect_status 75 "$DLOCK" run -q -n -k job -- flock -n oracle true
! flock -n oracle true || fail "the job had ended before the next one tried"
expect_status 0 "$DLOCK" run -q -k job -w 20 -- flock -n oracle true
wait_until 20 no_row
