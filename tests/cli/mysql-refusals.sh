#!/usr/bin/env bash
# ctest: cost 20
# What a MySQL server refuses, what is none and what is not there at all ends in the right status and in a
# line on stderr that names the server, soon, starts nothing and leaves nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
product=mysql
secret=sesame
. "$TEST_SOURCE/tests/cli/refusals.sh"
export DLOCK_PASSWORD_FILE=$mysql_password_file

host=127.0.0.1
# Not there, or no MySQL server.
impostors greeting <<'END'
silent b''
http b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
ssh b'SSH-2.0-OpenSSH_9.2p1\r\n'
zeros b'\0' * 4096
blocked b'\x21\0\0\0\xff\x69\x04Host is blocked: \x1b[31mtoo much'
END
refuses 69 'no-such-host.invalid:3306: no such host' mysql://no-such-host.invalid/db
refuses 69 "$host:1: connection refused" mysql://$host:1/db
refuses 69 'connection refused' 'mysql://[::1]:1/db'
refuses 69 "$host:2" mysql://$host:1,$host:2/db
refuses 69 'no such socket' "mysql:///db?socket=$tmp/none"
for name in silent full; do refuses 69 'no answer within ' "mysql://$host:${port[$name]}/db"; done
for name in http ssh zeros; do refuses 69 "$host:${port[$name]}" "mysql://$host:${port[$name]}/db"; done
refuses 69 'blocked' "mysql://$host:${port[blocked]}/db"
assert_lacks "$(<err)" $'\e' "what a server says"

(umask 077 && echo "$secret-wrong" >wrong)
start_mysql a
at=app@$host:${mysql_port[a]}
for method in table row version; do
  url=mysql-$method://$at/test
  works "$url"
  refuses 77 'wrong password for user "app", or the user may not connect from this host' "$url" --password-file wrong
  refuses 77 'wrong password for user "nobody"' "mysql-$method://nobody@$host:${mysql_port[a]}/test"
  refuses 77 'the database "nowhere"' "mysql-$method://$at/nowhere"
  works "mysql-$method://app@/test?socket=${mysql_dir[a]}/socket"
  # The first that is a primary, whatever is with the others.
  works "mysql-$method://app@$host:1,$host:${mysql_port[a]}/test"
done
# What operators get.
for method in table row version; do
  for command in list 'show job' 'force-release --yes job'; do
    read -ra words <<<"$command"
    looks_refused 77 'wrong password for user' "${words[@]}" -b "mysql-$method://$at/test" --password-file wrong
    looks_refused 69 'connection refused' "${words[@]}" -b "mysql-$method://app@$host:1/test"
    looks_refused 69 'no answer within ' "${words[@]}" -b "mysql-$method://app@$host:${port[silent]}/test"
  done
done

sql a "CREATE USER root_like@'%' IDENTIFIED BY '$secret'; GRANT ALL ON *.* TO root_like@'%'"
refuses 64 'there is no database "nowhere"' "mysql://root_like@$host:${mysql_port[a]}/nowhere"
refuses 69 'speak TLS' "mysql://$at/test?tls=on"

# Tables that are not dlock's, and no right to make them.
sql a 'CREATE TABLE their_locks (id INT)'
refuses 64 'choose another --prefix' "mysql://$at/test" --prefix their_
sql a "$("$DLOCK" backends --schema mysql --prefix isam_ | sed s/InnoDB/MyISAM/)"
for method in table row version; do
  refuses 64 'must be as dlock makes it (dlock backends --schema mysql), in the engine InnoDB' "mysql-$method://$at/test" --prefix isam_
done
assert_equal id "$(sql a 'SELECT GROUP_CONCAT(column_name) FROM information_schema.columns
                          WHERE table_name LIKE "their\_%"')" "what there is of their tables"

# No connection left, and a server that takes no changes.
sql a "CREATE USER one@'%' IDENTIFIED BY '$secret' WITH MAX_USER_CONNECTIONS 1; GRANT ALL ON test.* TO one@'%'"
DLOCK_BACKEND=mysql://one@$host:${mysql_port[a]}/test hold --ttl 30
for method in table row version; do
  refuses 69 'the user "one" ' "mysql-$method://one@$host:${mysql_port[a]}/test" --nonblock
done
release
sql a 'SET GLOBAL max_connections = 10'
asleep="FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
is_full() { # but for root, who has one more
  local here
  here=$(sql a "SELECT COUNT(*) $asleep")
  ((here < 10)) || return 0
  mariadb --no-defaults --user=app --password="$secret" --socket="${mysql_dir[a]}/socket" \
    --execute='SELECT SLEEP(1000)' >full 2>&1 &
  return 1
}
wait_until 20 is_full
for method in table row version; do
  refuses 69 'it has no connection left; max_connections is its limit' "mysql-$method://$at/test" --nonblock
done
# It is well, and has no room: that is waited for.
"$DLOCK" run -b "mysql://$at/test" -k job -- touch ran 2>err &
waiter=$!
wait_until 20 grep -q 'trying again until it answers' err
sql a 'SET GLOBAL max_connections = 300'
expect_status 0 wait $waiter
[[ -e ran ]] || fail "the waiter had no turn ($(<err))"
rm ran
sql a "$(sql a "SELECT CONCAT('KILL ', id, ';') $asleep")"
works "mysql://$at/test"

start_mysql b read_only=1
for method in table row version; do
  refuses 69 'is it a replica?' "mysql-$method://app@$host:${mysql_port[b]}/test"
  works "mysql-$method://app@$host:${mysql_port[b]},$host:${mysql_port[a]}/test"
done

# Logs statements as they are, which cannot be right for what dlock does.
start_mysql c log_bin=log binlog_format=STATEMENT
for method in table row version; do
  got=0
  DLOCK_BACKEND=mysql-$method://app@$host:${mysql_port[c]}/test "$DLOCK" run -n -k job -- touch ran 2>err || got=$?
  ((got == 64 || got == 69)) || fail "status $got ($(<err))"
  assert_contains "$(<err)" "mysql $host:${mysql_port[c]}: "
  [[ $(<err) == *[Bb][Ii][Nn][Ll][Oo][Gg]_* ]] || fail "it does not say what is wrong: $(<err)"
  [[ ! -e ran ]] || fail "the command was run"
done

# Makes no InnoDB tables, which no waiting changes.
start_mysql d enforce_storage_engine=Aria sql_mode=NO_ENGINE_SUBSTITUTION
for method in table row version; do
  refuses 64 'one of its options forbids that' "mysql-$method://app@$host:${mysql_port[d]}/test"
  assert_lacks "$(<err)" replica "what it says"
done
