#!/usr/bin/env bash
# install.sh DIRECTORY: makes it the data directory of a MariaDB server, to be copied for each server of
# a test, in place of what is there.  There is a database `test`; root has no password; `app` has the
# password `sesame`, and may do anything in it and in databases whose name begins with `contract`.  Without MariaDB: nothing, and status 125.
set -euo pipefail
PATH+=:/usr/sbin # of mariadbd
settings=$(dirname "${BASH_SOURCE[0]}")/server.cnf
for program in mariadbd mariadb-install-db; do
  command -v "$program" >/dev/null || exit 125
done

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
run mariadb-install-db --defaults-file="$settings" "${user[@]}" --datadir="$new/data" \
  --auth-root-authentication-method=normal --skip-test-db </dev/null
run mariadbd --defaults-file="$settings" "${user[@]}" --datadir="$new/data" --bootstrap <<'SQL'
FLUSH PRIVILEGES;
CREATE DATABASE test;
CREATE USER app@'%' IDENTIFIED BY 'sesame';
GRANT ALL ON test.* TO app@'%';
GRANT ALL ON `contract%`.* TO app@'%';
SQL
rm -rf -- "$1"
mv -- "$new/data" "$1"
rm -rf -- "$new"
