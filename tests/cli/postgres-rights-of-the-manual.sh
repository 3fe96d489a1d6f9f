#!/usr/bin/env bash
# A user with the rights that dlock-postgres(7) names can do everything with postgres and postgres-row.  And a program
# that locks a row as that page says excludes a job of postgres-row, and is excluded by it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
. "$(dirname "$0")/recipe.sh"

start_postgres a
sql a 'CREATE DATABASE app'
as_root() { psql -XqAt -h "${postgres_dir[a]}" -p "${postgres_port[a]}" -U postgres -v ON_ERROR_STOP=1 app; }
dlock backends --schema postgres | as_root || fail "the server refuses the tables"
recipe postgres-rights | sed "s/'PASSWORD'/'sesame'/" | as_root ||
  fail "the server refuses the statements of the manual"
export DLOCK_PASSWORD_FILE=$postgres_password_file
place=jobs@127.0.0.1:${postgres_port[a]}/app

for method in postgres postgres-row; do
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
DLOCK_BACKEND=postgres://$place
lock=$(dlock acquire --export -k lease --ttl 1m)
eval "$lock"
dlock renew -k lease
dlock release -k lease

# The row.
export DLOCK_BACKEND=postgres-row://$place
recipe postgres-row >row.sql
dlock run -k job -- sh -c 'touch started; until test -e over; do sleep 0.02; done' &
wait_until 30 test -e started
PGOPTIONS='-c lock_timeout=1s' as_root <row.sql >out 2>err || true
assert_equal '' "$(<out)" "the row while a job runs"
assert_contains "$(<err)" 'lock timeout'
touch over
wait $! || fail "the job ended with $?"
{ cat row.sql; echo "SELECT 'has it'; SELECT pg_sleep(1000);"; } >program.sql
as_root <program.sql >out 2>err &
wait_until 30 grep -q 'has it' out
assert_equal job "$(head -n 1 out)" "the row that the program has"
expect_status 75 dlock run -k job -w 0.5 -q -- true
