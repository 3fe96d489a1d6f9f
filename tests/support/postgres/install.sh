#!/usr/bin/env bash
# install.sh DIRECTORY: makes it the data directory of a PostgreSQL server, to be copied for each server of a
# test, in place of what is there.  There is a database `test`, which belongs to `app`, whose password is
# `sesame`; postgres, the superuser, has none on the unix socket.  Without PostgreSQL: nothing, and status 125.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"
[[ -n $postgres_bin ]] || exit 125

new=$1.new
rm -rf -- "$new"
mkdir -p -- "$new"
open_for_postgres "$new"
# run PROGRAM ARGUMENTS...: without its chatter, unless it fails.
run() {
  "${as_postgres[@]}" "$@" >"$new/output" 2>&1 </dev/null || {
    cat "$new/output" >&2
    exit 1
  }
}
run "$postgres_bin/initdb" --pgdata="$new/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync
cat >"$new/data/pg_hba.conf" <<'HBA'
local all postgres trust
local all all md5
host all all all md5
local replication all trust
host replication all all trust
HBA
cat >>"$new/data/postgresql.conf" <<'CONF'
shared_buffers = 16MB
max_connections = 300
max_wal_size = 128MB
log_min_messages = log
CONF
# A login by SCRAM takes 5 ms of each side, and the tests make thousands; that of other users is by SCRAM.
{
  echo "SET password_encryption = md5"
  echo "CREATE ROLE app LOGIN PASSWORD 'sesame'"
  echo "CREATE DATABASE test OWNER app"
} >"$new/sql"
"${as_postgres[@]}" "$postgres_bin/postgres" --single -D "$new/data" postgres <"$new/sql" >"$new/output" 2>&1 || {
  cat "$new/output" >&2
  exit 1
}
rm -rf -- "$1"
mv -- "$new/data" "$1"
rm -rf -- "$new"
