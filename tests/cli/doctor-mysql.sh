#!/usr/bin/env bash
# ctest: cost 15
# What dlock doctor finds wrong with a MySQL server, each provoked on one; what it says to paste mends it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/clock.sh"
. "$(dirname "$0")/doctor.sh"
cd "$tmp"
. "$TEST_SOURCE/tests/cli/certificates.sh"
need python3
unset DLOCK_BACKEND
export DLOCK_PASSWORD_FILE=$mysql_password_file

# mend NAME SERVER: runs the line that is printed under the finding NAME, without its remark, as root of the server.
mend() {
  local line root="mariadb --no-defaults -u root -S '${mysql_dir[$2]}/socket'"
  line=$(grep -EA2 "^[a-zA-Z]+ +$1 " out | sed -n "s!^.*: \(mariadb .*\)!\1!; s/    #.*//; /\(^\|[ |]\)mariadb -h .* -u root -p /s!mariadb -h [^ ]* -P [0-9]* -u root -p!$root!gp")
  [[ -n $line ]] || fail "nothing to paste under $1 in $(<out)"
  PATH=${DLOCK%/*}:$PATH bash -c "${line#      }" || fail "cannot be pasted: $line"
}

# A server as it should be: nothing to complain of.
start_mysql a log_bin=log binlog_format=ROW sync_binlog=1
url=${mysql_url[a]}
doctor 0 -b "$url" --strict
finds note mysql-tables 'missing: dlock_keys, dlock_locks, dlock_records'
finds_no try-acquire
assert_equal '' "$(sql a 'SHOW TABLES')" "the tables"
mend mysql-tables a
doctor 0 -b "$url" --strict
for name in server round-trip clock read-only connections wait-timeout binlog-format durability tables; do
  finds ok "mysql-$name"
done
finds ok mysql-server ' user app@%, address 127.0.0.1'
for name in acquire renew show list release wake-a-waiter force-release done-mark; do finds ok "try-$name"; done
for name in proxy cluster primaries connect; do finds_no "mysql-$name"; done
assert_lacks "$(<out)" sesame "the output"

# A clock that is 3 s off: ours, so the server's is ahead, and behind.
new_clock ours
for ms in -3000 6000; do
  jump_clock ours $ms
  CLOCK_SHIM=${clock_file[ours]} LD_PRELOAD=$TEST_CLOCK_SHIM "$DLOCK" doctor -b "$url" --read-only >out
  where=behind
  ((ms > 0)) || where='ahead of'
  finds warn mysql-clock "s $where the clock of this machine"
done

# Settings.
sql a 'SET GLOBAL max_connections = 15; SET GLOBAL wait_timeout = 3'
doctor 0 -b "$url"
finds warn mysql-connections '1 of 15 in use'
finds ok mysql-wait-timeout '3 s; dlock sets its own'
doctor 0 -b "$url" --ttl 24h
finds ok mysql-wait-timeout
mend mysql-connections a
sql a 'SET GLOBAL innodb_flush_log_at_trx_commit = 2'
doctor 1 -b "$url" --strict
finds warn mysql-durability 'innodb_flush_log_at_trx_commit 2'
mend mysql-durability a
sql a 'SET GLOBAL sync_binlog = 0'
doctor 0 -b "$url"
finds warn mysql-durability 'sync_binlog 0'
mend mysql-durability a
sql a 'SET GLOBAL binlog_format = STATEMENT'
doctor 1 -b "$url"
finds FAIL mysql-binlog-format STATEMENT
mend mysql-binlog-format a
doctor 0 -b "$url" --strict
sql a "CREATE USER one@'%' IDENTIFIED BY 'sesame' WITH MAX_USER_CONNECTIONS 4; GRANT ALL ON test.* TO one@'%'"
doctor 0 -b "mysql://one@127.0.0.1:${mysql_port[a]}/test" --read-only
finds warn mysql-connections 'this user may have 4'
mend mysql-connections a
doctor 0 -b "mysql://one@127.0.0.1:${mysql_port[a]}/test" --read-only
finds ok mysql-connections

# Two servers in the URL.
start_mysql b read_only=1
both=mysql://app@127.0.0.1:${mysql_port[b]},127.0.0.1:${mysql_port[a]}/test
doctor 0 -b "$both" --strict
finds ok mysql-read-only "${mysql_port[b]}: replica, read-only"
finds ok try-done-mark
doctor 1 -b "${mysql_url[b]}"
finds FAIL mysql-read-only read-only
finds_no try-acquire
mend mysql-read-only b
doctor 1 -b "$both"
finds FAIL mysql-primaries "${mysql_port[a]}: one of 2 servers that take writes"
finds FAIL mysql-primaries "${mysql_port[b]}: one of 2 servers that take writes"
advises "if this one is the standby: mariadb -h 127.0.0.1 -P ${mysql_port[a]} -u root -p test -e 'SET GLOBAL read_only = 1'    # and in its my.cnf"
sql a 'SET GLOBAL read_only = 1'
doctor 0 -b "$both"
finds_no mysql-primaries
sql a 'SET GLOBAL read_only = 0'
# One server by two names is one.
doctor 0 -b "mysql://app@127.0.0.1:${mysql_port[a]},localhost:${mysql_port[a]}/test" --strict
finds_no mysql-primaries

# Servers that are not there, or silent.
doctor 0 -b "mysql://app@127.0.0.1:1,127.0.0.1:${mysql_port[a]}/test"
finds warn mysql-connect 'mysql 127.0.0.1:1: connection refused'
finds ok try-acquire
pause_mysql b
before=$(now_ms)
doctor 0 -b "$both" --connect-timeout 500ms
finds warn mysql-connect 'no answer within'
doctor 69 -b "${mysql_url[b]}" --connect-timeout 500ms
finds FAIL mysql-connect 'no answer within'
(($(now_ms) - before < 10000)) || fail "that took $(($(now_ms) - before)) ms"
resume_mysql b
(umask 077 && echo wrong >wrong)
doctor 77 -b "$url" --password-file wrong
finds FAIL mysql-connect 'wrong password for user "app"'
doctor 77 -b "mysql://app@127.0.0.1:${mysql_port[a]}/nowhere"
finds FAIL mysql-connect 'the database "nowhere"'

# A user who lacks rights: to create tables, then those of a lock.
sql a "CREATE DATABASE few; CREATE USER few@'%' IDENTIFIED BY 'sesame'; GRANT SELECT ON few.* TO few@'%'"
few=mysql://few@127.0.0.1:${mysql_port[a]}/few
doctor 1 -b "$few"
finds FAIL mysql-tables 'missing, or not open to this user: dlock_keys, dlock_locks, dlock_records'
mend mysql-tables a
doctor 0 -b "$few" --strict
sql a "REVOKE INSERT ON few.dlock_locks FROM few@'%'"
doctor 77 -b "$few"
finds ok mysql-tables
finds FAIL try-acquire 'the user "few" may not do that'
mend try-acquire a
doctor 0 -b "$few" --strict
finds ok try-done-mark
# The row of mysql-row stays if it cannot be deleted.
sql a "USE few; GRANT INSERT, UPDATE ON dlock_rows TO few@'%'"
doctor 0 -b "${few/mysql/mysql-row}"
finds warn mysql-tables 'may not DELETE from dlock_rows'
finds_no try-acquire
assert_equal 0 "$(sql a 'SELECT COUNT(*) FROM few.dlock_rows')" "rows"
mend mysql-tables a
doctor 0 -b "${few/mysql/mysql-row}" --strict
finds ok try-done-mark
sql a 'DROP TABLE few.dlock_records'
doctor 0 -b "$few"
finds warn mysql-tables 'missing, or not open to this user: dlock_records'
mend mysql-tables a
sql a "GRANT SELECT, INSERT, UPDATE, DELETE ON few.dlock_records TO few@'%'"
doctor 0 -b "$few"
finds ok try-done-mark
sql a "REVOKE ALL ON few.dlock_records FROM few@'%'; REVOKE SELECT ON few.* FROM few@'%'"
doctor 0 -b "$few"
finds warn mysql-tables 'missing, or not open to this user: dlock_records'
mend mysql-tables a
doctor 0 -b "$few" --strict
sql a "GRANT SELECT ON few.* TO few@'%'"
sql a 'DROP TABLE few.dlock_records'
doctor 0 -b "$few"
finds ok try-force-release
finds_no try-done-mark

# Tables that are not dlock's.
sql a 'ALTER TABLE dlock_locks ENGINE=MyISAM'
doctor 1 -b "$url"
finds FAIL mysql-tables 'in the engine InnoDB'
finds_no try-acquire
sql a 'ALTER TABLE dlock_locks ENGINE=InnoDB; ALTER TABLE dlock_records MODIFY name VARCHAR(200) NOT NULL'
doctor 1 -b "$url"
finds FAIL mysql-tables 'the table dlock_records must be as dlock makes it'
sql a 'DROP TABLE dlock_records'
doctor 0 -b "$url" --strict
finds note mysql-tables 'missing: dlock_records'
mend mysql-tables a

# A proxy that has a connection of its own to the server, and sets wait_timeout there.
cat >proxy.py <<'PY'
import socket, sys, threading
here = socket.create_server(("127.0.0.1", 0))
print(here.getsockname()[1], flush=True)
def pass_on(source, target, change):
    while data := source.recv(65536):
        target.sendall(change(data))
    target.close()
def renumber(greeting):
    at = greeting.index(b"\0", 5) + 1  # behind the version
    return greeting[:at] + b"\x07\0\0\0" + greeting[at + 4:]
while True:
    client, _ = here.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    client.sendall(renumber(server.recv(65536)))
    threading.Thread(target=pass_on, args=(server, client, bytes), daemon=True).start()
    threading.Thread(target=pass_on, args=(client, server, lambda data: data.replace(b"wait_timeout=28800", b"wait_timeout=5    ")), daemon=True).start()
PY
python3 proxy.py "${mysql_port[a]}" >port &
wait_until 20 test -s port
doctor 1 -b "mysql://app@127.0.0.1:$(<port)/test?tls=off" --read-only
finds FAIL mysql-proxy 'a proxy: connection 7 is '
finds warn mysql-wait-timeout '5 s, although dlock asked for more'

# A certificate that ends in days matters to those who verify it.
certificate ca ca 90 basicConstraints=critical,CA:TRUE
certificate server ca 5 subjectAltName=DNS:localhost,IP:127.0.0.1
start_mysql s ssl_ca="$tmp/ca.pem" ssl_cert="$tmp/server.pem" ssl_key="$tmp/server.key"
doctor 0 -b "${mysql_url[s]}" --strict
finds ok mysql-tls 'TLS; the certificate ends in '
doctor 1 -b "${mysql_url[s]}?tls=verify&ca=$tmp/ca.pem" --strict
finds warn mysql-tls 'TLS; the certificate ends in '
