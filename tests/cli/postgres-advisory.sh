#!/usr/bin/env bash
# ?pg_advisory: postgres-row keeps out the programs that take an advisory lock, and is kept out by them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
cd "$tmp"
product=postgres
. "$TEST_SOURCE/tests/cli/refusals.sh"
export DLOCK_PASSWORD_FILE=$postgres_password_file
start_postgres a
base=postgres-row://app@127.0.0.1:${postgres_port[a]}/test

# program FUNCTION: another program that takes a lock by this call, until its stdin ends.
program() {
  coproc PROGRAM { sql a; }
  echo "SELECT 'it has', $1;" >&"${PROGRAM[1]}"
  read -r -t 10 _ <&"${PROGRAM[0]}" || fail "it did not get its lock"
}
end_program() {
  local pid=$PROGRAM_PID input=${PROGRAM[1]}
  exec {input}>&-
  wait "$pid" || true
}
# is_free FUNCTION: whether such a program would get the lock.
is_free() { [[ $(sql a "SELECT $1") == t ]]; }

while read -r value arguments; do
  export DLOCK_BACKEND="$base?pg_advisory=$value"
  program "pg_advisory_lock($arguments)"
  "$DLOCK" run -n -k job -- touch ran 2>err || true
  grep -q '"job" is held by a program that has the advisory lock ' err || fail "says: $(<err)"
  "$DLOCK" run -k job -- touch ran 2>err &
  waiter=$!
  wait_until 20 grep -q 'a program that has the advisory lock' err
  [[ ! -e ran ]] || fail "it ran beside another program"
  end_program
  wait "$waiter"
  rm ran
  # Kept out while the job runs, and let in as soon as it has ended.
  expect_status 0 "$DLOCK" run -k job -- psql --no-psqlrc -Atqh "${postgres_dir[a]}" -p "${postgres_port[a]}" \
    -U postgres -c "SELECT pg_try_advisory_lock($arguments)" -o tried test
  [[ $(<tried) == f ]] || fail "?pg_advisory=$value keeps nobody out"
  is_free "pg_try_advisory_lock($arguments)" || fail "the lock of ?pg_advisory=$value is still there"
  [[ $value == 4,-2 ]] || continue
  # Readers, beside a program that reads.
  program "pg_advisory_lock_shared($arguments)"
  expect_status 0 "$DLOCK" run -n -k job --shared -- "$DLOCK" run -n -k other --shared -- true
  expect_status 75 "$DLOCK" run -q -n -k job -- true
  end_program
done <<'END'
42 42
-9223372036854775808 (-9223372036854775808)::bigint
4,-2 4,-2
hash hashtext('job')
END

# A job with another key waits for the same lock: so one job cannot hold two of them.
refuses 64 'with this URL all keys are one lock' "$base?pg_advisory=7" -k job -k other
shards config.json "$base?pg_advisory=7" "${base/test/postgres}"
refuses 64 'with this URL all keys are one lock' '' --config config.json -b db -k job -k other
expect_status 0 "$DLOCK" run -n -b "$base?pg_advisory=hash" -k job -k other -- true
DLOCK_BACKEND="$base?pg_advisory=7" hold --ttl 30
expect_status 75 "$DLOCK" run -q -n -b "$base?pg_advisory=7" -k other -- true
expect_status 0 "$DLOCK" run -q -n -b "$base?pg_advisory=8" -k other -- true
release

# The connection that has the advisory lock ends: so does the job.
"$DLOCK" run -b "$base?pg_advisory=7" -k job --ttl 3 -- sleep 60 2>err &
holder=$!
is_locked() { [[ $(sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7") == 1 ]]; }
wait_until 20 is_locked
sql a "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7" >/dev/null
status=0
wait "$holder" || status=$?
[[ $status == 79 ]] || fail "ends with $status"
grep -q 'other programs out' err || fail "says: $(<err)"
expect_status 0 "$DLOCK" run -w 20 -b "$base?pg_advisory=7" -k job -- true

# The server's queue is in order, however long a program has the lock.
export DLOCK_BACKEND="$base?pg_advisory=7"
program 'pg_advisory_lock(7)'
"$DLOCK" run -k job -- sh -c 'echo job >>order' &
waiter=$!
are_waiting() { [[ $(sql a "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted $2") == "$1" ]]; }
wait_until 20 are_waiting 1 ''
printf '%s\n' 'SELECT pg_advisory_lock(7);' '\! echo program >>order' | sql a >/dev/null &
next=$!
wait_until 20 are_waiting 2 ''
wait_until 30 are_waiting 1 "AND waitstart < now() - INTERVAL '11 s'"
end_program
wait "$waiter" "$next"
assert_equal 'job program' "$(paste -sd ' ' order)" 'they came in the order'

for value in '' '4,' ',2' 4,2,1 x 9223372036854775808 4294967296,1 '1)::int' 'hash,1'; do
  refuses 64 'pg_advisory in the URL must be' "$base?pg_advisory=$value"
done
refuses 64 'pg_advisory in the URL is for postgres-row' "postgres://app@127.0.0.1:${postgres_port[a]}/test?pg_advisory=1"
