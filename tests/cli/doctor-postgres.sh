#!/usr/bin/env bash
# ctest: cost 15
# What dlock doctor finds wrong with a PostgreSQL server, each provoked on one; what it says to paste mends it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
. "$(dirname "$0")/clock.sh"
. "$(dirname "$0")/doctor.sh"
cd "$tmp"
unset DLOCK_BACKEND
export DLOCK_PASSWORD_FILE=$postgres_password_file

# mend NAME SERVER: runs the line that is printed under the finding NAME, without its remark, as the superuser.
mend() {
  local line
  line=$(grep -EA2 "^[a-zA-Z]+ +$1 " out | sed -n 's/^ .*\(dlock backends \)/\1/p; t; s/^ .*\(psql -h\)/\1/p')
  line=${line%%    #*}
  [[ -n $line ]] || fail "nothing to paste under $1 in $(<out)"
  line=${line//-h 127.0.0.1 -p ${postgres_port[$2]}/-qAt -h ${postgres_dir[$2]} -p ${postgres_port[$2]} -v ON_ERROR_STOP=1}
  PATH=${DLOCK%/*}:$PATH bash -ec "$line" >/dev/null || fail "cannot be pasted: $line"
}

# A server as it should be: nothing to complain of.
start_postgres a fsync=on
url=${postgres_url[a]}
doctor 0 -b "$url" --strict
finds note postgres-tables 'missing: public.dlock_keys, public.dlock_locks, public.dlock_records'
finds_no try-acquire
assert_equal '' "$(sql a "SELECT relname FROM pg_stat_user_tables")" "the tables"
"$DLOCK" run -q -k job -b "$url" -- true  # whose tables belong to the user
doctor 0 -b "$url" --strict
for name in server round-trip clock standby connections durability vacuum tables; do finds ok "postgres-$name"; done
finds ok postgres-server ', user app, address 127.0.0.1'
for name in acquire renew show list release wake-a-waiter force-release done-mark; do finds ok "try-$name"; done
for name in tls primaries connect; do finds_no "postgres-$name"; done
assert_lacks "$(<out)" sesame "the output"
doctor 0 -b "postgres-row${url#postgres}" --strict

# A clock that is 3 s off: ours, so the server's is ahead, and behind.
new_clock ours
for ms in -3000 6000; do
  jump_clock ours $ms
  CLOCK_SHIM=${clock_file[ours]} LD_PRELOAD=$TEST_CLOCK_SHIM "$DLOCK" doctor -b "$url" --read-only >out
  where=behind
  ((ms > 0)) || where='ahead of'
  finds warn postgres-clock "s $where the clock of this machine"
done

# Settings.
sql a 'ALTER ROLE app CONNECTION LIMIT 7'
doctor 0 -b "$url" --read-only
finds warn postgres-connections 'this user may have 7'
mend postgres-connections a
doctor 0 -b "$url" --read-only
finds ok postgres-connections 'this user may have 500'
sql a 'ALTER SYSTEM SET full_page_writes = off'
sql a 'SELECT pg_reload_conf()' >/dev/null
is_off() { [[ $(sql a 'SHOW full_page_writes') == off ]]; }
wait_until 10 is_off
doctor 1 -b "$url" --strict
finds warn postgres-durability 'full_page_writes off'
mend postgres-durability a
is_on() { ! is_off; }
wait_until 10 is_on
doctor 0 -b "$url" --strict
sql a 'CREATE TABLE orders (id int)'
doctor 0 -b "$url" --strict
finds note postgres-vacuum '1 other tables in this database'
mend postgres-vacuum a
sql a 'DROP DATABASE dlock'
sql a 'DROP TABLE orders'

sql a 'ALTER ROLE app SET log_lock_waits = on'
doctor 0 -b "$url" --strict
finds note postgres-log 'log_lock_waits is on'
mend postgres-log a
doctor 0 -b "$url" --strict
finds_no postgres-log

# A few connections only.
start_postgres few max_connections=10
doctor 0 -b "${postgres_url[few]}"
finds warn postgres-connections '1 of 7 in use'
mend postgres-connections few

# Two servers in the URL.
start_postgres b
: >"${postgres_dir[b]}/data/standby.signal"
chown --reference="${postgres_dir[b]}/data/PG_VERSION" "${postgres_dir[b]}/data/standby.signal"
restart_postgres b
both=postgres://app@127.0.0.1:${postgres_port[b]},127.0.0.1:${postgres_port[a]}/test
doctor 0 -b "$both" --strict
finds ok postgres-standby "${postgres_port[b]}: standby, read-only"
finds ok try-done-mark
doctor 1 -b "${postgres_url[b]}"
finds FAIL postgres-standby read-only
finds_no try-acquire
mend postgres-standby b
doctor 1 -b "$both"
finds FAIL postgres-primaries "${postgres_port[a]}: one of 2 servers that take writes"
finds FAIL postgres-primaries "${postgres_port[b]}: one of 2 servers that take writes"
advises 'stop the one that was the primary before, and make it a standby again'
# One server by two names is one.
doctor 0 -b "postgres://app@127.0.0.1:${postgres_port[a]},localhost:${postgres_port[a]}/test" --strict
finds_no postgres-primaries

# Servers that are not there, or silent.
doctor 0 -b "postgres://app@127.0.0.1:1,127.0.0.1:${postgres_port[a]}/test"
finds warn postgres-connect 'postgres 127.0.0.1:1: connection refused'
finds ok try-acquire
pause_postgres b
before=$(now_ms)
doctor 0 -b "$both" --connect-timeout 500ms
finds warn postgres-connect 'no answer within'
doctor 69 -b "${postgres_url[b]}" --connect-timeout 500ms
finds FAIL postgres-connect 'no answer within'
(($(now_ms) - before < 10000)) || fail "that took $(($(now_ms) - before)) ms"
resume_postgres b
(umask 077 && echo wrong >wrong)
doctor 77 -b "$url" --password-file wrong
finds FAIL postgres-connect 'wrong password for user "app"'
doctor 64 -b "postgres://app@127.0.0.1:${postgres_port[a]}/nowhere"
finds FAIL postgres-connect 'there is no database "nowhere"'
advises 'dlock run ends with status 64.'

# A user who lacks rights: to create tables, then those of a lock.
sql a "CREATE ROLE few LOGIN PASSWORD 'sesame'"
few=postgres://few@127.0.0.1:${postgres_port[a]}/test
doctor 1 -b "$few" --prefix few_
finds FAIL postgres-tables 'missing, or not open to this user: public.few_keys, public.few_locks, public.few_records'
mend postgres-tables a
doctor 0 -b "$few" --prefix few_ --strict
finds ok try-done-mark
sql a 'REVOKE INSERT ON few_locks FROM few'
doctor 1 -b "$few" --prefix few_
finds FAIL postgres-tables 'may not write to public.few_locks'
finds_no try-acquire
mend postgres-tables a
sql a 'REVOKE INSERT ON few_records FROM few'
doctor 0 -b "$few" --prefix few_
finds note postgres-tables 'may not write to public.few_records'
finds ok try-force-release
finds_no try-done-mark
sql a 'DROP TABLE few_records'
doctor 0 -b "$few" --prefix few_
finds warn postgres-tables 'missing, or not open to this user: public.few_records'
finds ok try-force-release
finds_no try-done-mark
mend postgres-tables a
doctor 0 -b "$few" --prefix few_ --strict

# Tables that are not dlock's.
sql a 'ALTER TABLE dlock_locks SET UNLOGGED'
doctor 1 -b "$url"
finds FAIL postgres-tables 'the table public.dlock_locks must be as dlock makes it'
finds_no try-acquire
