# shellcheck shell=bash disable=SC2034  # the arrays are for the scripts
# MariaDB servers for a script, each known by a name of its own.  After lib.sh:
#   . "$(dirname "$0")/mysql.sh"
# skips the test if MariaDB is not installed.  What is started here ends with the script, however that
# ends.  With start_proxy (proxy.sh).  Not from within $( ) or ( ).
#
#   ${mysql_port[NAME]}  ${mysql_pid[NAME]}  ${mysql_dir[NAME]}  of start_mysql
#   ${mysql_url[NAME]}   mysql://app@127.0.0.1:PORT/test: the user app, whose password is in the
#   $mysql_password_file; root has none.  Both may do anything in the database test.
: "${tmp:?lib.sh comes first}"
PATH+=:/usr/sbin  # of mariadbd
need mariadbd mariadb mariadb-install-db setpriv
. "${BASH_SOURCE[0]%/*}/ports.sh"
. "${BASH_SOURCE[0]%/*}/proxy.sh"
declare -gA mysql_port=() mysql_pid=() mysql_url=() mysql_dir=()
mysql_password_file=$tmp/mysql-password
(umask 077 && echo sesame >"$mysql_password_file")

lib_mysql_files=$TEST_SOURCE/tests/support/mysql
lib_mysql_user=()
((EUID != 0)) || lib_mysql_user=(--user=root)

# start_mysql NAME [SETTING]...: a server on a free port of 127.0.0.1 that serves, with these settings
# (read_only=1) after our own.
start_mysql() {
  local name=$1 dir=$tmp/mysql-$1
  shift
  lib_mysql_data
  mkdir "$dir"
  cp -R "$lib_mysql_data" "$dir/data"
  mysql_dir[$name]=$dir
  : >"$dir/settings"
  ((!$#)) || printf -- '--%s\n' "$@" >"$dir/settings"

  reserve_port "mysql_port[$name]"
  mysql_url[$name]=mysql://app@127.0.0.1:${mysql_port[$name]}/test
  lib_mysql_run "$name" || fail "mariadbd does not run: $(<"$dir/output")"
}

# stop_mysql NAME: kills it, as a power failure would, but for the FIN that the kernel sends.
stop_mysql() {
  kill -KILL "${mysql_pid[$1]}"
  wait "${mysql_pid[$1]}" 2>/dev/null || true
}

# restart_mysql NAME: starts it once more, with the same port and data; stops it if it still runs.
restart_mysql() {
  gone "${mysql_pid[$1]}" || stop_mysql "$1"
  lib_mysql_run "$1" || fail "mariadbd does not run: $(<"${mysql_dir[$1]}/output")"
}

# pause_mysql NAME, resume_mysql NAME: when this has returned it does nothing, with its connections open.
pause_mysql() {
  kill -STOP "${mysql_pid[$1]}"
  wait_until 10 grep -q '^State:[[:space:]]*[Tt]' "/proc/${mysql_pid[$1]}/status"
}
resume_mysql() { kill -CONT "${mysql_pid[$1]}"; }

# sql NAME [STATEMENT...]: what root gets in the database test: rows as lines, fields between tabs.
# Without a statement, of those on stdin.
sql() {
  local name=$1
  shift
  mariadb --no-defaults --user=root --socket="${mysql_dir[$name]}/socket" --batch \
    --skip-column-names ${1+"--execute=$*"} test
}

# mysql_backend NAME: for use_mysql in backends.sh and the like: mysql, mysql-row or mysql-version.
mysql_backend() {
  start_mysql server
  export DLOCK_PASSWORD_FILE=$mysql_password_file
  DLOCK_BACKEND=$1://app@127.0.0.1:${mysql_port[server]}/test
  location="$1://app:***@127.0.0.1:${mysql_port[server]}/test"
}

# Sets $lib_mysql_data to the files of a server that has just been installed.
lib_mysql_data() {
  lib_mysql_data=${TEST_MYSQL_DATA-}
  [[ ! -d $lib_mysql_data ]] || return 0
  lib_mysql_data=$tmp/mysql-data
  [[ -d $lib_mysql_data ]] || bash "$lib_mysql_files/install.sh" "$lib_mysql_data" ||
    fail "MariaDB could not be installed in $tmp"
}

# Runs the server with the port of this name until it serves; 1 if it ends.
lib_mysql_run() {
  local dir=${mysql_dir[$1]} settings
  mapfile -t settings <"$dir/settings"
  setpriv --pdeathsig KILL mariadbd --defaults-file="$lib_mysql_files/server.cnf" "${lib_mysql_user[@]}" \
    --datadir="$dir/data" --socket="$dir/socket" --port="${mysql_port[$1]}" --pid-file="$dir/pid" \
    --tmpdir="$dir" "${settings[@]}" >>"$dir/output" 2>&1 </dev/null &
  mysql_pid[$1]=$!
  local end=$((${EPOCHREALTIME/./} + 30000000))
  until sql "$1" 'SELECT 1' >/dev/null 2>&1; do
    ! gone "${mysql_pid[$1]}" || return 1
    ((${EPOCHREALTIME/./} < end)) || fail "mariadbd does not answer: $(<"$dir/output")"
    sleep 0.02
  done
}
