# shellcheck shell=bash disable=SC2034  # the variables are for the scripts
# For scripts whose behaviour every backend must have.  A script with the line "# ctest: every backend"
# near its top is a test of its own for each function use_NAME below, cli.<script>/NAME, and is told NAME
# in TEST_BACKEND.  After lib.sh:
#   . "$(dirname "$0")/backends.sh"
# starts what that backend needs, with no lock in it, points DLOCK_BACKEND there, and goes to $tmp.  By
# hand: TEST_BACKEND=redis bash tests/cli/NAME.sh; without it, it is the file backend.
#
#   $backend        its name
#   $location       where it is, as dlock prints it
#   ${trait[NAME]}  what `dlock backends --json` says of it
#   ${pid[NAME]}    the dlock of start NAME, holder NAME or waiter NAME
: "${tmp:?lib.sh comes first}"

use_file() { location=$DLOCK_BACKEND; }
use_redis() {
  . "${BASH_SOURCE[0]%/*}/redis.sh"
  start_redis server
  servers_of_backend=(redis server)
  DLOCK_BACKEND=${redis_url[server]}
  location=$DLOCK_BACKEND/0
}
use_redlock() {
  . "${BASH_SOURCE[0]%/*}/redis.sh"
  start_redlock server second third
  servers_of_backend=(redis server second third)
  DLOCK_BACKEND=redlock://$servers
  location=$DLOCK_BACKEND/0
}
use_zookeeper() {
  . "${BASH_SOURCE[0]%/*}/zookeeper.sh"
  start_zk server
  servers_of_backend=(zk server)
  DLOCK_BACKEND=${zk_url[server]}
  location=$DLOCK_BACKEND
}

use_mysql() { lib_use_mysql mysql; }
use_mysql-row() { lib_use_mysql mysql-row; }
use_mysql-version() { lib_use_mysql mysql-version; }
lib_use_mysql() {
  . "${BASH_SOURCE[0]%/*}/mysql.sh"
  mysql_backend "$1"
  servers_of_backend=(mysql server)
}

use_postgres() { lib_use_postgres postgres; }
use_postgres-row() { lib_use_postgres postgres-row; }
lib_use_postgres() {
  . "${BASH_SOURCE[0]%/*}/postgres.sh"
  postgres_backend "$1"
  servers_of_backend=(postgres server)
}

# stop_servers: kills all that the backend has.  restart_servers: starts them once more, with their data
# if they keep any.
stop_servers() { lib_each_server stop; }
restart_servers() { lib_each_server restart; }
lib_each_server() {
  local name
  for name in "${servers_of_backend[@]:1}"; do "$1_${servers_of_backend[0]}" "$name"; done
}
servers_of_backend=()  # their kind, and their names

declare -A trait=() pid=()
backend=${TEST_BACKEND:-file}
unset TEST_BACKEND
while read -r lib_name lib_value; do
  trait[$lib_name]=$lib_value
done < <("$DLOCK" backends --json | sed -n "/\"name\": \"$backend\"/,/}/s/[\":,]/ /gp")
[[ ${trait[name]-} == "$backend" ]] || fail "dlock knows no backend $backend"
[[ ${trait[built_in]} == true ]] || skip "this dlock has no $backend backend"
"use_$backend"
cd "$tmp" || exit
unset lib_name lib_value

# ends_at_once: a holder that is killed holds nothing any more, and not only when its ttl is over.
ends_at_once() { [[ ${trait[ends_on]} != @(session|ttl) ]]; }

# What a holder or waiter of these tests runs: see start.  There are many of them: read(1) sleeps without a
# process of its own.
cat >job <<'SH'
#!/bin/bash
exec 9<> <(:)
echo $$ >"$1.pid"
echo "$DLOCK_TOKEN" >"$1.token"
echo "${DLOCK_FENCE-}" >"$1.fence"
echo "$1" >>order
touch "$1.held"
until [[ -e $1.go ]]; do read -rt 0.02 -u 9 || :; done
SH
chmod +x job
job=./job

# start NAME ARGUMENTS...: dlock run ARGUMENTS in the background.  Its command is $job; as soon as that
# runs, NAME is a line of ./order, and NAME.held, NAME.pid, NAME.token and NAME.fence are there.  It ends
# by itself once NAME.go is there.  What dlock says is in NAME.err.
start() {
  local name=$1
  shift
  rm -f "$name".{held,pid,token,fence,go,err,status}
  "$DLOCK" run "$@" -- "$job" "$name" 2>"$name.err" &
  pid[$name]=$!
}

# start_script ./SCRIPT ARGUMENTS...: a script of the test in the background; it is ready when this returns,
# and has touched ./ready.  It is pid[script], and says what it has to say to script.err.
start_script() {
  rm -f ready term end
  "$@" 2>script.err &
  pid[script]=$!
  wait_until 30 test -e ready
}

# holder NAME ARGUMENTS...: the same as start, and it has the lock.
holder() {
  start "$@"
  runs "$1"
}

# runs NAME: waits until it has the lock.
runs() {
  wait_until 30 lib_runs "$1"
}
lib_runs() {
  [[ ! -e $1.held ]] || return 0
  ! gone "${pid[$1]}" || fail "$1 has ended without the lock: $(<"$1.err")"
  return 1
}

# waiter NAME KEY ARGUMENTS...: start NAME -k KEY ARGUMENTS..., which is one waiter more when this returns.
waiter() {
  local name=$1 key=$2 before
  shift 2
  before=$(waiting "$key")
  start "$name" -k "$key" "$@"
  wait_until 30 lib_waits_more "$key" "$before"
}

# freeze NAME, thaw NAME: stops and continues this dlock with all processes below it.
freeze() { lib_signal_all STOP "$1"; }
thaw() { lib_signal_all CONT "$1"; }
lib_signal_all() {
  local -a tree
  mapfile -t tree < <(tree_of "${pid[$2]}")
  kill -"$1" "${tree[@]}"
}

# waiting KEY: how many wait for it.
waiting() {
  local rows=()
  mapfile -t rows < <("$DLOCK" show --output waiting -- "$1")
  echo "${rows[1]-0}"
}
lib_waits_more() { (($(waiting "$1") > $2)); }

# ends STATUS NAME...: these end with this status, within 30 s.  finish NAME...: and are told to, with 0.
ends() {
  local want=$1 name got
  shift
  for name in "$@"; do
    wait_until 30 gone "${pid[$name]}"
    got=0
    wait "${pid[$name]}" || got=$?
    ((got == want)) || fail "$name ends with status $got: $(<"$name.err")"
  done
}
finish() {
  local name
  for name in "$@"; do touch "$name.go"; done
  ends 0 "$@"
}
