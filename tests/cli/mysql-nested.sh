#!/usr/bin/env bash
# What run-nested.sh says of the file backend holds with a MySQL server.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

start_mysql a
for method in table row version; do
  bash "$DLOCK_SOURCE/tests/cli/run-nested.sh" "mysql-$method://app:sesame@127.0.0.1:${mysql_port[a]}/test"
done
