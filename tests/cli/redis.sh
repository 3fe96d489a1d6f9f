# shellcheck shell=bash disable=SC2034  # the arrays are for the scripts
# Redis servers for a script, each known by a name of its own.  After lib.sh:
#   . "$(dirname "$0")/redis.sh"
# skips the test if there is no redis-server.  What is started here ends with the script, however that
# ends.  With new_clock (clock.sh) and start_proxy (proxy.sh).  Not from within $( ) or ( ).
#
#   ${redis_port[NAME]}  ${redis_pid[NAME]}  ${redis_url[NAME]}  ${redis_dir[NAME]}  of start_redis
#   $servers  of start_redlock       $sentinels  of start_sentinels
: "${tmp:?lib.sh comes first}"
need redis-server redis-cli setpriv
. "${BASH_SOURCE[0]%/*}/clock.sh"
. "${BASH_SOURCE[0]%/*}/ports.sh"
. "${BASH_SOURCE[0]%/*}/proxy.sh"
declare -gA redis_port=() redis_pid=() redis_url=() redis_dir=()

# start_redis NAME [SETTING VALUE]...: an empty server on a free port of 127.0.0.1 that answers; without
# persistence, but for what the settings of redis.conf say.  With the time of new_clock NAME, if there
# is one.
start_redis() {
  local name=$1 dir=$tmp/redis-$1
  shift
  mkdir "$dir"
  redis_dir[$name]=$dir
  {
    printf '%s\n' 'bind 127.0.0.1' "unixsocket $dir/socket" "dir $dir" "logfile $dir/log" \
      'loglevel warning' 'daemonize no' 'save ""' 'appendonly no'
    while (($#)); do
      printf '%s %s\n' "$1" "${2:-\"\"}"
      shift 2
    done
  } >"$dir/redis.conf"

  reserve_port "redis_port[$name]"
  redis_url[$name]=redis://127.0.0.1:${redis_port[$name]}
  lib_redis_run "$name" || fail "redis-server does not run: $(lib_redis_log "$name")"
}

# start_redlock NAME...: these servers, each by start_redis; $servers is what --servers takes.
start_redlock() {
  local name
  servers=
  for name; do
    start_redis "$name"
    servers+=${servers:+,}127.0.0.1:${redis_port[$name]}
  done
}

# start_replica NAME MASTER: ready once it has what MASTER has.
start_replica() {
  rcli "$2" config set repl-diskless-sync-delay 0 >/dev/null
  start_redis "$1" replicaof "127.0.0.1 ${redis_port[$2]}" repl-diskless-sync-delay 0
  wait_until 20 is_linked "$1"
}

is_master() { [[ $(rcli "$1" role | head -1) == master ]]; }
is_replica() { [[ $(rcli "$1" role | head -1) == slave ]]; }
is_linked() { rcli "$1" info replication | grep -q ^master_link_status:up; }

# start_sentinels MASTER NAME...: sentinels of these names that watch over MASTER as mymaster; $sentinels is
# what a URL takes.  A failover begins after half a second.  Ready when all know each other and the replicas.
start_sentinels() {
  local master=$1 name replicas
  shift
  sentinels=
  replicas=$(rcli "$master" info replication | sed -n 's/^connected_slaves:\([0-9]*\).*/\1/p')
  for name; do
    redis_dir[$name]=$tmp/redis-$name
    mkdir "${redis_dir[$name]}"
    reserve_port "redis_port[$name]"
    printf '%s\n' 'bind 127.0.0.1' "unixsocket ${redis_dir[$name]}/socket" "dir ${redis_dir[$name]}" 'daemonize no' \
      "logfile ${redis_dir[$name]}/log" "sentinel monitor mymaster 127.0.0.1 ${redis_port[$master]} $(($# / 2 + 1))" \
      'sentinel down-after-milliseconds mymaster 500' 'sentinel failover-timeout mymaster 3000' \
      >"${redis_dir[$name]}/redis.conf"
    lib_redis_run "$name" --sentinel || fail "redis-sentinel does not run: $(lib_redis_log "$name")"
    sentinels+=${sentinels:+,}127.0.0.1:${redis_port[$name]}
  done
  for name; do
    wait_until 20 lib_sentinel_knows "$name" num-other-sentinels "$(($# - 1))"
    wait_until 20 lib_sentinel_knows "$name" num-slaves "$replicas"
  done
}

# stop_redis NAME: kills it, as a power failure would, but for the FIN that the kernel sends.
stop_redis() {
  kill -KILL "${redis_pid[$1]}"
  wait "${redis_pid[$1]}" 2>/dev/null || true
}

# restart_redis NAME: starts it once more, with the same port and directory; stops it if it still runs.
restart_redis() {
  [[ ! -d /proc/${redis_pid[$1]} ]] || stop_redis "$1"
  lib_redis_run "$1" || fail "redis-server does not run: $(lib_redis_log "$1")"
}

# pause_redis NAME, resume_redis NAME: when this has returned it does nothing, with its connections open.
pause_redis() {
  kill -STOP "${redis_pid[$1]}"
  wait_until 10 lib_is_stopped "${redis_pid[$1]}"
}
resume_redis() { kill -CONT "${redis_pid[$1]}"; }

# rcli NAME ARGUMENTS...: redis-cli; nil is an empty line.
rcli() {
  local name=$1
  shift
  redis-cli --raw -p "${redis_port[$name]}" "$@"
}

lib_is_stopped() { grep -q '^State:[[:space:]]*[Tt]' "/proc/$1/status"; }

lib_redis_log() { cat "${redis_dir[$1]}"/{output,log} 2>/dev/null || true; }

lib_redis_answers() {
  local reply
  reply=$(redis-cli -s "${redis_dir[$1]}/socket" ping 2>/dev/null) || return 1
  [[ -n $reply && $reply != LOADING* && $reply != *refused* ]]
}

lib_sentinel_knows() { rcli "$1" sentinel master mymaster | grep -A1 -x -- "$2" | grep -qx "$3"; }

# Runs the server with the port of this name until it answers; 1 if it ends.  More arguments are its.
lib_redis_run() {
  local name=$1 dir=${redis_dir[$1]} environment=()
  shift
  if [[ -n ${clock_file[$name]-} ]]; then
    environment=("CLOCK_SHIM=${clock_file[$name]}" "LD_PRELOAD=$TEST_CLOCK_SHIM")
  fi
  env "${environment[@]}" setpriv --pdeathsig KILL redis-server "$dir/redis.conf" \
    --port "${redis_port[$name]}" "$@" >>"$dir/output" 2>&1 </dev/null &
  redis_pid[$name]=$!
  local end=$((${EPOCHREALTIME/./} + 20000000))
  until lib_redis_answers "$name"; do
    ! gone "${redis_pid[$name]}" || return 1
    ((${EPOCHREALTIME/./} < end)) || fail "redis-server does not answer: $(lib_redis_log "$name")"
    sleep 0.005
  done
}
