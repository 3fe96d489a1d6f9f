#!/usr/bin/env bash
# A user with the rights that dlock-mysql(7) names can do everything with mysql, mysql-row and mysql-version.  And a
# program that locks a row as that page says excludes a job of mysql-row, and is excluded by it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/recipe.sh"

start_mysql a
sql a "CREATE DATABASE app; USE app; $(dlock backends --schema mysql); $(recipe mysql-rights | sed 's/PASSWORD/sesame/')" ||
  fail "the server refuses the statements of the manual"
export DLOCK_PASSWORD_FILE=$mysql_password_file
place=jobs@127.0.0.1:${mysql_port[a]}/app

for method in mysql mysql-row mysql-version; do
  export DLOCK_BACKEND=$method://$place
  dlock run -k job -- sh -c 'touch started; exec sleep 1000' 2>err &
  wait_until 30 test -e started
  rm started
  assert_contains "$(dlock show job)" "job: held"
  dlock force-release --yes job 2>said || fail "$(<said)"
  expect_status 79 wait $!
  dlock once -k import --every 1d -- true 2>err || fail "$(<err)"
  dlock once -k import --reset
  dlock id --name n >/dev/null
done
DLOCK_BACKEND=mysql://$place
lock=$(dlock acquire --export -k lease --ttl 1m)
eval "$lock"
dlock renew -k lease
dlock release -k lease

# The row.
export DLOCK_BACKEND=mysql-row://$place
{ echo 'USE app;'; recipe mysql-row | sed 's/= 10;/= 1;/'; } >row.sql
dlock run -k job -- sh -c 'touch started; until test -e over; do sleep 0.02; done' &
wait_until 30 test -e started
sql a <row.sql >out 2>err || true
assert_equal '' "$(<out)" "the row while a job runs"
assert_contains "$(<err)" 'Lock wait timeout'
touch over
wait $! || fail "the job ended with $?"
{ cat row.sql; echo "SELECT 'has it'; DO SLEEP(1000);"; } >program.sql
mariadb --no-defaults --user=root --socket="${mysql_dir[a]}/socket" --batch --skip-column-names --unbuffered \
  test <program.sql >out 2>err &
wait_until 30 grep -q 'has it' out
assert_equal job "$(head -n 1 out)" "the row that the program has"
expect_status 75 dlock run -k job -w 0.5 -q -- true
