#!/usr/bin/env bash
# ctest: cost 25
# What "dlock backends --schema" prints can be fed to the client, and then a user who may not create
# tables can do all there is to do; before, the message says so.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
start_mysql a
export DLOCK_PASSWORD_FILE=$mysql_password_file
sql a "CREATE DATABASE few; CREATE USER few@'%' IDENTIFIED BY 'sesame'; GRANT SELECT, INSERT, UPDATE, DELETE ON few.* TO few@'%'"
at=few@127.0.0.1:${mysql_port[a]}/few
all=$("$DLOCK" backends --schema mysql)

for method in table row version; do
  try 77 -b "mysql-$method://$at" -k job -- touch ran
  assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
  assert_contains "$(<err)" 'an administrator must run: dlock backends --schema mysql | mariadb few' "the message"
  [[ ! -e ran ]] || fail "the command was run"
  expect_status 77 "$DLOCK" id -b "mysql-$method://$at" --name order 2>err
  assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
  assert_contains "$(<err)" 'an administrator must run: dlock backends --schema mysql | mariadb few' "the message"
done

# Every name means the same.
for name in mysql-table mysql-row mysql-version; do
  assert_equal "$all" "$("$DLOCK" backends --schema $name)" "the schema of $name"
done
"$DLOCK" backends --schema mysql >schema
"$DLOCK" backends --schema mysql --prefix jobs_ >>schema
DLOCK_PREFIX=more_ "$DLOCK" backends --schema mysql >>schema
for round in 'where there are none' 'where they are'; do
  sql a "USE few; $(<schema)" || fail "the server refuses the schema, $round"
done
assert_equal "$(echo {dlock,jobs,more}_{keys,locks,records,rows})" \
  "$(sql a 'SHOW TABLES FROM few' | sort | xargs)" "the tables"

for prefix in dlock_ jobs_ more_; do
  for method in table row version; do
    export DLOCK_BACKEND=mysql-$method://$at DLOCK_PREFIX=$prefix
    "$DLOCK" id --name order >>numbers
    "$DLOCK" id --snowflake >>numbers
    for _ in 1 2; do "$DLOCK" once -k job --remember 1d -q -- sh -c 'echo ran >>once' || fail "dlock once"; done
    for kind in '' --shared --slots=1; do
      hold ${kind:+"$kind"}
      "$DLOCK" show job >out
      expect_status 75 "$DLOCK" run -k job ${kind/--shared/} -w 0.3 -q -- true
      # Somebody waits, and gets it.
      "$DLOCK" run -k job ${kind:+"$kind"} -q -- true &
      waiter=$!
      release
      expect_status 0 wait $waiter
    done
    hold
    "$DLOCK" force-release --yes job 2>err
    got=0
    wait "$holder" || got=$?
    assert_equal 79 "$got" "status of a job whose lock was broken ($(<err))"
    unset DLOCK_PREFIX
  done
done

# The three backends share the counters of a prefix.
assert_equal '1 1 1 2 2 2 3 3 3' "$(sort -n numbers | head -n 9 | xargs)" "the numbers"
assert_equal 9 "$(sort -n numbers | tail -n +10 | uniq | wc -l)" "snowflake ids"

# They do not share what is done.
assert_equal 9 "$(wc -l <once)" "jobs of dlock once"

# A table of somebody else, or in an engine that loses data.
sql a "USE few; CREATE TABLE odd_records (a INT); CREATE TABLE old_records LIKE dlock_records; ALTER TABLE old_records ENGINE=MyISAM"
for prefix in odd_ old_; do
  for what in '--name order' --snowflake; do
    # shellcheck disable=SC2086  # words
    expect_status 64 "$DLOCK" id --prefix $prefix $what >out 2>err
    assert_equal "/1" "$(<out)/$(wc -l <err)" "stdout, and lines of stderr ($(<err))"
    assert_contains "$(<err)" "${prefix}records"
  done
done
assert_equal 0 "$(sql a 'SELECT COUNT(*) FROM few.old_records')" "rows in a table of another engine"
unset DLOCK_BACKEND

# Anything else has no tables, or does not exist.
for name in file redis redlock zookeeper zk; do
  expect_status 64 "$DLOCK" backends --schema $name >out 2>err
  assert_equal "/1" "$(<out)/$(wc -l <err)" "stdout and lines of stderr"
  assert_contains "$(<err)" "has no tables; those that have: mysql, mysql-row, mysql-version"
done
expect_status 64 "$DLOCK" backends --schema mysq >out 2>err
assert_contains "$(<err)" 'unknown backend "mysq"; did you mean "mysql"?'
expect_status 64 "$DLOCK" backends --schema "mysql://few:hunter2@h/few" >out 2>err
assert_lacks "$(<err)" hunter2
expect_status 64 "$DLOCK" backends --schema mysql --prefix 'a;b' >out 2>err
assert_contains "$(<err)" 'bad prefix'
expect_status 64 "$DLOCK" backends --prefix jobs_ >out 2>err
assert_contains "$(<err)" '--schema'
