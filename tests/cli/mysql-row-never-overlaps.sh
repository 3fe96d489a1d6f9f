#!/usr/bin/env bash
# ctest: longer in soak
# ctest: processors 2
# ctest: cost 25
# The server of a mysql-row lock is killed and started again, over and over, while six clients want the lock.  Half of
# them are behind a proxy that drops all packets for a while when the server dies, and half of the jobs ignore SIGTERM.
# No two jobs overlap, and the fencing tokens grow.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
need python3 flock
cd "$tmp"
rounds=2 pause=4
[[ -z ${TEST_SOAK-} ]] || rounds=38 pause=8
mysql_backend mysql-row
start_proxy far "${mysql_port[server]}"
touch oracle grants overlaps
echo 0 >fence

cat >job.sh <<'SH'
#!/bin/sh
# The kernel ends the lock on the oracle when the last process of the job has ended.
exec 9<>oracle
flock -n 9 || { echo "$DLOCK_FENCE" >>overlaps; exit 99; }
[ "$DLOCK_FENCE" -gt "$(cat fence)" ] || echo "stale $DLOCK_FENCE" >>overlaps
echo "$DLOCK_FENCE" >fence
echo "$1" >>grants
[ "$1" = heeds ] || trap '' TERM
sleep "$2" &
wait
SH
chmod +x job.sh

# client NUMBER: wants the lock until ./over is there.
client() {
  local heeds=heeds got
  (($1 % 2)) || export DLOCK_BACKEND=${DLOCK_BACKEND/:${mysql_port[server]}/:${proxy_port[far]}}
  (($1 / 2 % 2)) || heeds=ignores
  until [[ -e over ]]; do
    got=0
    "$DLOCK" run -q -k job --ttl 2s --kill-after 0.9s \
      -w 10 --connect-timeout 2s -- ./job.sh $heeds "$((RANDOM % 3)).$((RANDOM % 10))" 2>>err || got=$?
    # Ended, busy, unreachable, or lost.
    [[ $got == @(0|69|75|79) ]] || echo "status $got" >>overlaps
  done
}
clients=()
for ((i = 0; i < 6; ++i)); do
  client $i &
  clients+=($!)
done
for ((round = 0; round < rounds; ++round)); do
  sleep "$pause"
  proxy far blackhole
  stop_mysql server
  restart_mysql server
  sleep 2
  proxy far pass
  [[ ! -s overlaps ]] || break
done
touch over
wait "${clients[@]}"
echo "$(wc -l <grants) grants ($(grep -c ignores grants) of jobs that ignore SIGTERM), $(wc -l <overlaps) overlaps"
[[ ! -s overlaps ]] || fail "OVERLAP: $(<overlaps) ($(tail -n 5 err))"
(($(wc -l <grants) >= rounds)) || fail "hardly anybody had the lock: $(tail -n 20 err)"
# The server takes a session that is silent for one of a holder, for a ttl at most.
no_row() { [[ $(sql server "SELECT COUNT(*) FROM dlock_locks WHERE role <> 'holder'") == 0 ]]; }
wait_until 20 no_row
expect_status 0 "$DLOCK" run -q -k job -w 20 -- true
