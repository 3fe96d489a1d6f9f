# shellcheck shell=bash disable=SC2034  # the arrays are for the scripts
# PostgreSQL servers for a script, each known by a name of its own.  After lib.sh:
#   . "$(dirname "$0")/postgres.sh"
# skips the test if PostgreSQL is not installed.  What is started here ends with the script, however that
# ends.  With start_proxy (proxy.sh).  Not from within $( ) or ( ).
#
#   ${postgres_port[NAME]}  ${postgres_pid[NAME]}  ${postgres_dir[NAME]}  of start_postgres
#   ${postgres_url[NAME]}   postgres://app@127.0.0.1:PORT/test: the user app, whose password is in the
#   $postgres_password_file; the database test is its own.
: "${tmp:?lib.sh comes first}"
need psql setpriv
lib_postgres_files=$TEST_SOURCE/tests/support/postgres
# shellcheck source=../support/postgres/programs.sh
(. "$lib_postgres_files/programs.sh" && [[ -n $postgres_bin ]]) || skip "PostgreSQL is not installed"
. "${BASH_SOURCE[0]%/*}/ports.sh"
. "${BASH_SOURCE[0]%/*}/proxy.sh"
declare -gA postgres_port=() postgres_pid=() postgres_url=() postgres_dir=()
postgres_password_file=$tmp/postgres-password
(umask 077 && echo sesame >"$postgres_password_file")

# start_postgres NAME [SETTING]...: a server on a free port of 127.0.0.1 that serves, with these settings
# (fsync=off).
start_postgres() {
  local name=$1 dir=$tmp/postgres-$1
  shift
  mkdir "$dir"
  chmod 0711 "$tmp"
  postgres_dir[$name]=$dir
  : >"$dir/settings"
  ((!$#)) || printf '%s\n' "$@" >"$dir/settings"
  reserve_port "postgres_port[$name]"
  postgres_url[$name]=postgres://app@127.0.0.1:${postgres_port[$name]}/test
  lib_postgres_run "$name" || fail "postgres does not run: $(<"$dir/output")"
}

# stop_postgres NAME: kills it, as a power failure would, but for the FIN that the kernel sends.
stop_postgres() {
  lib_postgres_signal "$1" KILL
  wait "${postgres_pid[$1]}" 2>/dev/null || true
}

# restart_postgres NAME: starts it once more, with the same port and data; stops it if it still runs.
restart_postgres() {
  gone "${postgres_pid[$1]}" || stop_postgres "$1"
  lib_postgres_run "$1" || fail "postgres does not run: $(<"${postgres_dir[$1]}/output")"
}

# pause_postgres NAME, resume_postgres NAME: when this has returned it does nothing, with its connections open.
pause_postgres() {
  kill -STOP "${postgres_pid[$1]}"
  wait_until 10 grep -q '^State:[[:space:]]*[Tt]' "/proc/${postgres_pid[$1]}/status"
  lib_postgres_signal "$1" STOP
}
resume_postgres() { lib_postgres_signal "$1" CONT; }

# sql NAME [STATEMENT...]: what the superuser gets in the database test: rows as lines, fields between bars.
# Without a statement, of those on stdin.
sql() {
  local name=$1
  shift
  psql --no-psqlrc --host="${postgres_dir[$name]}" --port="${postgres_port[$name]}" --username=postgres \
    --no-align --tuples-only --quiet --set=ON_ERROR_STOP=1 ${1+"--command=$*"} test
}

# postgres_backend NAME: for use_postgres in backends.sh and the like: postgres or postgres-row.
postgres_backend() {
  start_postgres server
  export DLOCK_PASSWORD_FILE=$postgres_password_file
  DLOCK_BACKEND=$1://app@127.0.0.1:${postgres_port[server]}/test
  location="$1://app:***@127.0.0.1:${postgres_port[server]}/test"
}

# Each connection has a process of its own.
lib_postgres_signal() {
  local pid=${postgres_pid[$1]} children
  children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || true
  # shellcheck disable=SC2086  # they are several
  kill -"$2" "$pid" $children 2>/dev/null || true
  [[ $2 == KILL ]] || return 0
  # Another server may not use the data until they have gone.
  local child
  for child in $children; do wait_until 10 gone "$child"; done
}

# Runs the server with the port of this name until it serves; 1 if it ends.
lib_postgres_run() {
  local dir=${postgres_dir[$1]} settings
  mapfile -t settings <"$dir/settings"
  setpriv --pdeathsig KILL bash "$lib_postgres_files/serve.sh" "$dir" "${postgres_port[$1]}" "${settings[@]}" \
    >>"$dir/output" 2>&1 </dev/null &
  postgres_pid[$1]=$!
  local end=$((${EPOCHREALTIME/./} + 30000000))
  until sql "$1" 'SELECT 1' >/dev/null 2>&1; do
    ! gone "${postgres_pid[$1]}" || return 1
    ((${EPOCHREALTIME/./} < end)) || fail "postgres does not answer: $(<"$dir/output")"
    sleep 0.02
  done
}
