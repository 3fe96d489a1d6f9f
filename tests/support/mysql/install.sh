#!/usr/bin/env bash
# install.sh DIRECTORY: makes it the data directory of a MariaDB server, to be copied for each server of
# a test, in place of what is there.  There is a database `test`; root has no password; `app` has the
# password `sesame`, and may do anything in it and in databases whose name begins with `contract`.  Without MariaDB: nothing, and status 125.
# With TEST_MYSQL_ROOT (tests/with-mysql.sh), it is the data directory of a MySQL server.
set -euo pipefail
PATH+=:/usr/sbin # of mariadbd
files=$(dirname "${BASH_SOURCE[0]}")
if [[ -z ${TEST_MYSQL_ROOT-} ]]; then
  for program in mariadbd mariadb-install-db; do
    command -v "$program" >/dev/null || exit 125
  done
fi

new=$1.new
rm -rf -- "$new"
mkdir -p -- "$new"
# A server that starts removes the temporary tables of others from a common directory.
export TMPDIR=$new
user=()
((EUID != 0)) || user=(--user=root)

# run PROGRAM ARGUMENTS...: without its chatter, unless it fails.
run() {
  "$@" >"$new/output" 2>&1 || {
    cat "$new/output" >&2
    exit 1
  }
}
# A server reads one statement a line.
cat >"$new/sql" <<'SQL'
CREATE DATABASE test;
CREATE USER app@'%' IDENTIFIED BY 'sesame';
GRANT ALL ON test.* TO app@'%';
GRANT ALL ON `contract%`.* TO app@'%';
SQL
if [[ -n ${TEST_MYSQL_ROOT-} ]]; then
  run bash "$files/mysqld.sh" --defaults-file="$files/mysql.cnf" "${user[@]}" --datadir="$new/data" \
    --initialize-insecure --init-file="$new/sql"
  rm -f -- "$new/data/auto.cnf" # each server that is copied from it gets an identity of its own
else
  run mariadb-install-db --defaults-file="$files/server.cnf" "${user[@]}" --datadir="$new/data" \
    --auth-root-authentication-method=normal --skip-test-db </dev/null
  { echo 'FLUSH PRIVILEGES;' && cat "$new/sql"; } >"$new/bootstrap"
  run mariadbd --defaults-file="$files/server.cnf" "${user[@]}" --datadir="$new/data" --bootstrap <"$new/bootstrap"
fi
rm -rf -- "$1"
mv -- "$new/data" "$1"
rm -rf -- "$new"
