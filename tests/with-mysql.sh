#!/usr/bin/env bash
# Runs a command of which the tests of MySQL start MySQL's own server in MariaDB's place.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/with-mysql.sh COMMAND [ARGUMENTS...]
       e.g. tests/with-mysql.sh build/default/tests/contract/dlock-one-backend-tests \
              --gtest_filter='*mysql*:*Mysql*-*Galera*'

Runs COMMAND with MySQL's server of Debian unstable, of which it finds the directory in TEST_MYSQL_ROOT.
Nothing is installed: tests/unpack_server.sh says where it is; remove that to fetch the server of today.
If it cannot be had, or MariaDB's client is not installed, COMMAND is not run, and the status is 77.
TEXT
}

# shellcheck source=tests/unpack_server.sh
. "$(dirname "${BASH_SOURCE[0]}")/unpack_server.sh"
needs mariadb mariadb-client
unpack_server mysql mysql-server-core usr/sbin/mysqld
# What ctest made for the other tests is of MariaDB.
unset TEST_MYSQL_DATA
# To log in with TLS, MariaDB's client library reads all CAs that the system trusts: 20 ms each time, which is
# too long for tests that log in hundreds of times at once.
export SSL_CERT_FILE=/dev/null TEST_MYSQL_ROOT=$server_root
exec "$@"
