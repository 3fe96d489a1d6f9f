#!/usr/bin/env bash
# ctest: serial
# What run-excludes.sh counts is exact when a MySQL server keeps the lock, by each of the three methods.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

start_mysql a
nobody_waits() { [[ $(sql a "SELECT COUNT(*) FROM dlock_locks WHERE kind = 1 AND IS_USED_LOCK(CONCAT('dlock.w.', owner))") == 0 ]]; }
for method in table row version; do
  # Each killed supervisor costs a ttl: a short one.
  bash "$DLOCK_SOURCE/tests/cli/run-excludes.sh" --password-file "$mysql_password_file" --ttl 1s \
    --backend "mysql-$method://app@127.0.0.1:${mysql_port[a]}/test"
  (($(sql a 'SELECT MIN(version) FROM dlock_keys WHERE slot = 0') >= 1000)) ||
    fail "the server counted too few grants of mysql-$method"
  wait_until 10 nobody_waits
done
