#!/usr/bin/env bash
# What a PostgreSQL server refuses, what is none and what is not there at all ends in the right status and in a line on
# stderr that names the server, soon, starts nothing and leaves nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
cd "$tmp"
product=postgres
secret=sesame
. "$TEST_SOURCE/tests/cli/refusals.sh"
export DLOCK_PASSWORD_FILE=$postgres_password_file

host=127.0.0.1
# Not there, or no PostgreSQL server.
impostors answering <<'END'
silent b''
http b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
zeros b'\0' * 4096
END
refuses 69 'no-such-host.invalid:5432: no such host' postgres://no-such-host.invalid/db
refuses 69 "$host:1: connection refused" postgres://$host:1/db
refuses 69 'connection refused' 'postgres://[::1]:1/db'
refuses 69 "$host:2" postgres://$host:1,$host:2/db
refuses 69 'no such file or directory' "postgres:///db?socket=$tmp/none"
for name in silent full; do refuses 69 'no answer within ' "postgres://$host:${port[$name]}/db"; done
for name in http zeros; do refuses 69 "$host:${port[$name]}" "postgres://$host:${port[$name]}/db"; done

(umask 077 && echo "$secret-wrong" >wrong)
: >none
start_postgres a
at=app@$host:${postgres_port[a]}
for method in postgres postgres-row; do
  url=$method://$at/test
  works "$url"
  refuses 77 'wrong password for user "app"' "$url" --password-file wrong
  refuses 77 'wrong password for user "nobody"' "$method://nobody@$host:${postgres_port[a]}/test"
  refuses 64 'there is no database "nowhere"' "$method://$at/nowhere"
  works "$method://app@/test?socket=${postgres_dir[a]}/.s.PGSQL.${postgres_port[a]}"
  # The first that is a primary, whatever is with the others.
  works "$method://app@$host:1,$host:${postgres_port[a]}/test"
  for command in list 'show job' 'force-release --yes job'; do
    read -ra words <<<"$command"
    looks_refused 77 'wrong password for user' "${words[@]}" -b "$url" --password-file wrong
    looks_refused 69 'connection refused' "${words[@]}" -b "$method://app@$host:1/test"
    looks_refused 69 'no answer within ' "${words[@]}" -b "$method://app@$host:${port[silent]}/test"
  done
done
refuses 69 'SSL' "postgres://$at/test?sslmode=require"

# A password that is nowhere, and one that is where psql looks for it.
(
  unset DLOCK_PASSWORD_FILE
  export HOME=$tmp
  refuses 77 'asks for the password of user "app"' "postgres://$at/test"
  (umask 077 && echo "$host:*:*:app:$secret" >.pgpass)
  works "postgres://$at/test"
  mv .pgpass other
  PGPASSFILE=$tmp/other works "postgres://$at/test"
  PGPASSFILE=$tmp/other PGUSER=app works "postgres://$host:${postgres_port[a]}/test"
  (umask 077 && printf '[jobs]\nuser=app\npassword=%s\n' "$secret" >service)
  PGSERVICEFILE=$tmp/service PGSERVICE=jobs works "postgres://$host:${postgres_port[a]}/test"
  PGUSER=nobody PGSERVICEFILE=$tmp/service PGSERVICE=none refuses 64 'definition of service "none" not found' \
    "postgres://$host:${postgres_port[a]}/test"
  PGUSER=nobody PGPASSWORD=x refuses 77 'wrong password for user "nobody"' "postgres://$host:${postgres_port[a]}/test"
)

# Tables that are not dlock's, and no right to make them.
sql a 'CREATE TABLE their_locks (id int); GRANT ALL ON their_locks TO app'
refuses 64 'choose another --prefix' "postgres://$at/test" --prefix their_
sql a "$("$DLOCK" backends --schema postgres --prefix lost_ | sed 's/CREATE TABLE/CREATE UNLOGGED TABLE/')
       GRANT ALL ON ALL TABLES IN SCHEMA public TO app"
refuses 64 'must be as dlock makes it (dlock backends --schema postgres --prefix lost_)' "postgres://$at/test" --prefix lost_
refuses 64 'bad prefix' "postgres://$at/test" --prefix Jobs_
sql a "CREATE ROLE guest LOGIN PASSWORD '$secret'"
refuses 77 "dlock backends --schema postgres --prefix none_ | psql test" \
  "postgres://guest@$host:${postgres_port[a]}/test" --prefix none_

# Another search_path is not another lock.
sql a 'CREATE SCHEMA theirs AUTHORIZATION app; ALTER ROLE app SET search_path = theirs'
DLOCK_BACKEND=postgres://$at/test hold --ttl 30
sql a 'ALTER ROLE app RESET search_path'
expect_status 75 "$DLOCK" run -b "postgres://$at/test" -q -n -k job -- true
release

# No connection left is waited for; for this user only, too.
sql a "ALTER ROLE guest CONNECTION LIMIT 0"
refuses 69 'has no connection left' "postgres://guest@$host:${postgres_port[a]}/test" --nonblock

start_postgres b
sql b 'ALTER SYSTEM SET primary_conninfo = '"''"
touch "${postgres_dir[b]}/data/standby.signal"
chown --reference="${postgres_dir[b]}/data/PG_VERSION" "${postgres_dir[b]}/data/standby.signal"
restart_postgres b
for method in postgres postgres-row; do
  refuses 69 'is it a standby?' "$method://app@$host:${postgres_port[b]}/test"
  works "$method://app@$host:${postgres_port[b]},$host:${postgres_port[a]}/test"
done
