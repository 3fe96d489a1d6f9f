#!/usr/bin/env bash
# ctest: cost 20
# A lease that cannot be renewed because a backup has stopped all changes ends its job.  A --ttl that is longer keeps
# the lock.  What was asked meanwhile is not done late.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
start_mysql server
export DLOCK_PASSWORD_FILE=$mysql_password_file
for method in mysql mysql-version; do
  export DLOCK_BACKEND=${mysql_url[server]/#mysql/$method}
  rm -f short
  "$DLOCK" run -k short --ttl 3s -- sh -c 'touch short; exec sleep 1000' 2>short.err &
  short=$!
  hold --ttl 60s
  wait_until 30 test -e short
  sql server 'FLUSH TABLES WITH READ LOCK; DO SLEEP(600)' 2>/dev/null &
  backup=$!
  expect_status 79 wait $short
  assert_contains "$(<short.err)" 'no answer within' "stderr of the holder"
  try 69 -k other --connect-timeout 2s -- true
  assert_contains "$(<err)" 'no answer within' "stderr of the first one"
  sql server "$(sql server "SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'")"
  wait $backup || true
  release
  for key in job short other; do assert_free $key; done
done
