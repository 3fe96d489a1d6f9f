#!/usr/bin/env bash
# servers.sh BACKEND COUNT: the servers of a campaign, for campaign.py.  Starts so many of the backend, where there is a
# choice: for redlock, and for MySQL and PostgreSQL, where 2 are a primary and a standby.  Prints lines NAME=VALUE about them.  Then it
# does what the lines on stdin say, until there are no more:
#   kill NAME...     as a power failure would       pause NAME...    SIGSTOP
#   restart NAME...  with its data, until it serves resume NAME...   SIGCONT
#   leader           prints which server leads      fail_over HOW S  the standby takes over (*failover.sh)
#   left KEY...      prints what these keys have left on the servers
#   grants           prints on which of several servers somebody has a lock, though it be too few of them
# Each answer ends with a line that has only a full stop.
# shellcheck source=../cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
cli=$TEST_SOURCE/tests/cli
backend=$1 count=$2
exec 3<&0 </dev/null
cd "$tmp"

# The lock is there after a restart: what was answered is in the file.
start_durable_redis() {
  local name
  DLOCK_BACKEND=
  for name; do
    start_redis "$name" appendonly yes appendfsync always
    DLOCK_BACKEND+=${DLOCK_BACKEND:+,}127.0.0.1:${redis_port[$name]}
  done
  DLOCK_BACKEND=$backend://$DLOCK_BACKEND
}

# zk_commits NAME: it opens a session, which needs a majority.  A leader that was stopped believes at first that it
# still leads.
zk_commits() { zk "$1" ls / >/dev/null 2>&1; }

names=()
case $backend in
  file) ;;
  redis | redlock)
    # shellcheck source=../cli/redis.sh
    . "$cli/redis.sh"
    kind=redis names=(a b c d e)
    names=("${names[@]:0:count}")
    start_durable_redis "${names[@]}"
    ;;
  zookeeper)
    # shellcheck source=../cli/zookeeper.sh
    . "$cli/zookeeper.sh"
    kind=zk names=(a b c)
    start_zk_ensemble "${names[@]}"
    DLOCK_BACKEND=zookeeper://127.0.0.1:${zk_port[a]},127.0.0.1:${zk_port[b]},127.0.0.1:${zk_port[c]}
    ;;
  mysql*)
    # shellcheck source=../cli/mysql.sh
    . "$cli/mysql.sh"
    kind=mysql names=(server) primary=server
    if ((count == 2)); then
      # shellcheck source=failover.sh
      . "$TEST_SOURCE/tests/campaign/failover.sh"
      kind=pair names=(a b)
      start_mysql_pair
      export DLOCK_PASSWORD_FILE=$mysql_password_file
      DLOCK_BACKEND=$backend://app@127.0.0.1:${mysql_port[a]},127.0.0.1:${mysql_port[b]}/test
    else
      mysql_backend "$backend"
    fi
    ;;
  postgres*)
    # shellcheck source=../cli/postgres.sh
    . "$cli/postgres.sh"
    kind=postgres names=(server) primary=server
    if ((count == 2)); then
      # shellcheck source=postgres_failover.sh
      . "$TEST_SOURCE/tests/campaign/postgres_failover.sh"
      kind=postgres_pair names=(a b)
      start_postgres_pair
      export DLOCK_PASSWORD_FILE=$postgres_password_file
      DLOCK_BACKEND=$backend://app@127.0.0.1:${postgres_port[a]},127.0.0.1:${postgres_port[b]}/test
    else
      postgres_backend "$backend"
    fi
    ;;
  *) fail "there is no campaign for the backend $backend" ;;
esac

grants_redis() {
  local name
  for name in "${names[@]}"; do rcli "$name" --scan --pattern 'dlock:*' | sed "s/^/redis $name: /"; done
}

# left_KIND KEY...: prints what is left, but for what may be: counters of fencing tokens, empty parents, lock files.
left_file() { (cd "$locks" && find . -path './*~w/*') }
# A mark that an id was given up or that a job is done, and the record of a waiter that was killed, expire.
left_redis() {
  local name key
  for name in "${names[@]}"; do
    rcli "$name" --scan | while read -r key; do
      case $key in
        *:fence) ;;
        *:revoked:* | *:void:* | *:waiter:* | *:done:*) (($(rcli "$name" pttl "$key") != -1)) || echo "redis $name: $key, which does not expire" ;;
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
left_pair() { left_mysql; }
left_postgres_pair() { left_mysql; }
left_postgres() { left_mysql; }
# The row that tells a holder that its lock was broken (broken) expires if the holder was killed.
left_mysql() {
  sql "$primary" "SELECT 'row', name, role, owner, expires_at FROM dlock_locks
    WHERE name IS NOT NULL AND NOT (role = 'broken' AND expires_at IS NOT NULL)"
}

printf '%s\n' "DLOCK=$DLOCK" "DLOCK_BACKEND=$DLOCK_BACKEND" "DLOCK_PASSWORD_FILE=${DLOCK_PASSWORD_FILE-}" \
  "HOME=$HOME" "TMPDIR=$tmp" "names=${names[*]}" .

while read -r action rest <&3; do
  read -ra words <<<"$rest"
  case $action in
    kill) for name in "${words[@]}"; do "stop_$kind" "$name"; done ;;
    restart | pause) for name in "${words[@]}"; do "${action}_$kind" "$name"; done ;;
    resume)
      for name in "${words[@]}"; do "resume_$kind" "$name"; done
      [[ $kind != zk ]] || for name in "${words[@]}"; do wait_until 60 zk_commits "$name"; done
      ;;
    leader) if [[ $kind == zk ]]; then zk_leader "${names[@]}" || true; else echo "$primary"; fi ;;
    fail_over) fail_over "${words[@]}" ;;
    grants) [[ ${kind-} != redis ]] || grants_redis ;;
    left) "left_${kind:-file}" "${words[@]}" ;;
    *) fail "what is $action?" ;;
  esac
  echo .
done
