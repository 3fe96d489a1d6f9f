#!/usr/bin/env bash
# Who is another user of the database may not end the holder's connection: a lock of mysql-row stays as it
# is, with status 77, and one of the others is broken, which its holder notices at its next renewal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
start_mysql a
export DLOCK_PASSWORD_FILE=$mysql_password_file
sql a "CREATE USER other@'%' IDENTIFIED BY 'sesame'; GRANT ALL ON test.* TO other@'%';
       CREATE USER admin@'%' IDENTIFIED BY 'sesame'; GRANT ALL ON test.* TO admin@'%';
       GRANT CONNECTION ADMIN ON *.* TO admin@'%'"
at() { echo "mysql-$1://$2@127.0.0.1:${mysql_port[a]}/test"; }
id() { "$DLOCK" show -o id job; }

for method in table version; do
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

export DLOCK_BACKEND
DLOCK_BACKEND=$(at row app)
hold --ttl 30s 2>err
before=$(id)
DLOCK_BACKEND=$(at row other)
expect_status 77 "$DLOCK" force-release --yes job 2>said
assert_contains "$(<said)" 'CONNECTION ADMIN' "stderr of one who may not"
assert_equal "$before" "$(id)" "the lock that was not broken"
assert_held job
DLOCK_BACKEND=$(at row admin)
"$DLOCK" force-release --yes --reason 'by the admin' job 2>said
got=0
wait "$holder" || got=$?
assert_equal 79 "$got" "status of the holder ($(<err))"
assert_contains "$(<err)" 'by the admin' "stderr of the holder"
assert_free job
