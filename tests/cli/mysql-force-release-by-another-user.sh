#!/usr/bin/env bash
# Who is another user of the database may not end the holder's connection: the lock is broken, which its holder notices at
# its next renewal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
start_mysql a
export DLOCK_PASSWORD_FILE=$mysql_password_file
sql a "CREATE USER other@'%' IDENTIFIED BY 'sesame'; GRANT ALL ON test.* TO other@'%'"
at() { echo "mysql-$1://$2@127.0.0.1:${mysql_port[a]}/test"; }

for method in table row version; do
  DLOCK_BACKEND=$(at $method app) hold --ttl 6s 2>err
  DLOCK_BACKEND=$(at $method other) "$DLOCK" force-release --yes --reason 'by somebody else' job 2>said
  assert_contains "$(<said)" 'broke "job"'
  begun=$EPOCHSECONDS
  got=0
  wait "$holder" || got=$?
  assert_equal 79 "$got" "status of the holder with mysql-$method ($(<err))"
  ((EPOCHSECONDS - begun <= 6)) || fail "it noticed after $((EPOCHSECONDS - begun)) s"
  assert_contains "$(<err)" 'by somebody else' "stderr of the holder"
done
