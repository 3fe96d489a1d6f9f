# shellcheck shell=bash disable=SC2154  # the arrays are those of postgres.sh
# A PostgreSQL primary and its standby, for servers.sh, after postgres.sh.  The primary answers a COMMIT when the standby
# has it too (synchronous_standby_names), so no lock that was granted is lost when the standby takes over.

primary=a standby=b

# start_postgres_pair: both, empty.
start_postgres_pair() {
  start_postgres a wal_retrieve_retry_interval=500ms
  start_postgres b wal_retrieve_retry_interval=500ms
  stop_postgres b
  build_standby
}

# wait_for_standby NAMES: of the standbys that the server which runs as $1 waits for.
wait_for_standby() { sql "$1" "ALTER SYSTEM SET synchronous_standby_names = '$2'" && sql "$1" 'SELECT pg_reload_conf()' >/dev/null; }

# build_standby: has the standby, which does not run, start with the data of the primary and follow it.
build_standby() {
  local dir=${postgres_dir[$standby]}
  rm -r "$dir/data"
  (
    . "$TEST_SOURCE/tests/support/postgres/programs.sh"
    "${as_postgres[@]}" "$postgres_bin/pg_basebackup" --pgdata="$dir/data" --write-recovery-conf --checkpoint=fast --no-sync \
      --host="${postgres_dir[$primary]}" --port="${postgres_port[$primary]}" --username=postgres
  ) >>"$dir/output" 2>&1 || fail "no copy of the primary: $(tail -n 3 "$dir/output")"
  lib_postgres_run "$standby" || fail "postgres does not run: $(<"$dir/output")"
  wait_for_standby "$primary" '*'
  wait_until 30 lib_is_followed
}
lib_is_followed() { [[ $(sql "$primary" "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'") == sync ]]; }

# fail_over HOW SECONDS: the standby takes over.  Of the primary: dead; planned: it was shut down; cut_off: it knows
# nothing of that, and goes on for so long, but no COMMIT of its is acknowledged any more.  Then a new server with its
# port follows.
fail_over() {
  local dead=$primary
  if [[ $1 == planned ]]; then
    kill -INT "${postgres_pid[$dead]}"
    wait "${postgres_pid[$dead]}" || true
  fi
  wait_for_standby "$standby" ''
  [[ $(sql "$standby" 'SELECT pg_promote()') == t ]] || fail "the standby was not promoted"
  primary=$standby standby=$dead
  if [[ $1 == cut_off ]]; then
    sleep "$2"
    stop_postgres "$dead"
  fi
  build_standby
}

restart_postgres_pair() { restart_postgres "$1"; }
stop_postgres_pair() { stop_postgres "$1"; }
pause_postgres_pair() { pause_postgres "$1"; }
resume_postgres_pair() { resume_postgres "$1"; }
