#!/usr/bin/env bash
# ctest: every mysql backend
# What run-excludes.sh counts is exact when a MySQL server keeps the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

nobody_waits() { [[ $(sql server "SELECT COUNT(*) FROM dlock_locks WHERE kind = 1 AND IS_USED_LOCK(CONCAT('dlock.w.', owner))") == 0 ]]; }
# Each killed supervisor costs a ttl: a short one.
bash "$DLOCK_SOURCE/tests/cli/run-excludes.sh" --password-file "$mysql_password_file" --ttl 1s \
  --backend "$DLOCK_BACKEND"
(($(sql server 'SELECT MIN(version) FROM dlock_keys WHERE slot = 0') >= 1000)) ||
  fail "the server counted too few grants of $backend"
wait_until 10 nobody_waits
