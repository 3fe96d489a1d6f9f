#!/usr/bin/env bash
# servers.sh BACKEND COUNT: the servers of a campaign, for campaign.py.  Starts those of the backend, COUNT of them for
# redlock, and prints lines NAME=VALUE about them.  Then it does what the lines on stdin say, until there are no more:
#   kill NAME...     as a power failure would       pause NAME...    SIGSTOP
#   restart NAME...  with its data, until it serves resume NAME...   SIGCONT
#   leader           prints which server leads      left KEY...      prints what these keys have left on the servers
# Each answer ends with a line that has only a full stop.
# shellcheck source=../cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
cli=$DLOCK_SOURCE/tests/cli
backend=$1 count=$2
exec 3<&0 </dev/null
cd "$tmp"

# The lock is there after a restart: what was answered is in the file.
start_durable_redis() {
  local name
  for name; do start_redis "$name" appendonly yes appendfsync always; done
}

names=()
case $backend in
  file) ;;
  redis | redlock)
    # shellcheck source=../cli/redis.sh
    . "$cli/redis.sh"
    kind=redis names=(a b c d e)
    names=("${names[@]:0:count}")
    start_durable_redis "${names[@]}"
    DLOCK_BACKEND=redlock://$(for name in "${names[@]}"; do printf ',127.0.0.1:%s' "${redis_port[$name]}"; done | cut -c2-)
    [[ $backend == redlock ]] || DLOCK_BACKEND=${redis_url[a]}
    ;;
  zookeeper)
    # shellcheck source=../cli/zookeeper.sh
    . "$cli/zookeeper.sh"
    kind=zk names=(a b c)
    start_zk_ensemble "${names[@]}"
    DLOCK_BACKEND=zookeeper://127.0.0.1:${zk_port[a]},127.0.0.1:${zk_port[b]},127.0.0.1:${zk_port[c]}
    ;;
  mysql-*)
    # shellcheck source=../cli/mysql.sh
    . "$cli/mysql.sh"
    kind=mysql names=(server)
    mysql_backend "${backend#mysql-}"
    ;;
  *) fail "there is no campaign for the backend $backend" ;;
esac

# left_KIND KEY...: prints what is left, but for what may be: counters of fencing tokens, empty parents, lock files.
left_file() { (cd "$locks" && find . -path './*~w/*') }
# A mark that an id was given up, and the record of a waiter that was killed, expire.
left_redis() {
  local name key
  for name in "${names[@]}"; do
    rcli "$name" --scan | while read -r key; do
      case $key in
        *:fence) ;;
        *:revoked:* | *:waiter:*) (($(rcli "$name" pttl "$key") != -1)) || echo "redis $name: $key, for ever" ;;
        *) echo "redis $name: $key" ;;
      esac
    done
  done
}
left_zk() {
  local key
  for key; do
    zk "${names[0]}" ls "/dlock/$key" 2>/dev/null | sed "s,^,node /dlock/$key/," || true
  done
}
left_mysql() { sql server "SELECT 'row', name, kind, owner, expires_at FROM dlock_locks WHERE name IS NOT NULL"; }

printf '%s\n' "DLOCK=$DLOCK" "DLOCK_BACKEND=$DLOCK_BACKEND" "DLOCK_PASSWORD_FILE=${DLOCK_PASSWORD_FILE-}" \
  "HOME=$HOME" "TMPDIR=$tmp" "XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR" "names=${names[*]}" .

while read -r action rest <&3; do
  read -ra words <<<"$rest"
  case $action in
    kill) for name in "${words[@]}"; do "stop_$kind" "$name"; done ;;
    restart | pause | resume) for name in "${words[@]}"; do "${action}_$kind" "$name"; done ;;
    leader) zk_leader "${names[@]}" || true ;;
    left) "left_${kind:-file}" "${words[@]}" ;;
    *) fail "what is $action?" ;;
  esac
  echo .
done
