# shellcheck shell=bash
# The three mysql backends on loopback, next to the redis backend.  After common.sh.
# MariaDB writes each commit to the disk, in BENCH_DIR; redis-server has no persistence here.
: "${tmp:?bench.sh comes first}" "${dlock:?}" "${rounds:?}"
server=  # of serve
PATH+=:/usr/sbin

if ! have mariadbd mariadb mariadb-install-db; then
  left_out "the mysql backends: mariadb-server is not installed"
  return 0
fi

mysql_says() { mariadb --no-defaults --user=root --socket="$tmp/mysql/socket" -BNe "$1" test; }
mysql_answers() { mysql_says 'SELECT 1' >/dev/null 2>&1; }
asked() { mysql_says "SHOW GLOBAL STATUS LIKE 'Questions'" | cut -f2; }

start_mariadb() {
  local attempt as_root=()
  ((EUID != 0)) || as_root=(--user=root)
  mkdir "$tmp/mysql"
  mariadb-install-db --no-defaults --datadir="$tmp/mysql/data" "${as_root[@]}" \
    --auth-root-authentication-method=normal >"$tmp/server.log" 2>&1
  for attempt in {1..10}; do
    mysql_port=$(some_port)
    if serve mysql_answers mariadbd --no-defaults --datadir="$tmp/mysql/data" "${as_root[@]}" \
      --socket="$tmp/mysql/socket" --port="$mysql_port" --bind-address=127.0.0.1 --skip-log-bin \
      --skip-name-resolve; then
      return
    fi
  done
  echo "bench.sh: mariadbd does not run (attempt $attempt): $(<"$tmp/server.log")" >&2
  exit 1
}

echo
start_mariadb
mysql_server=$server
redis_server=
if have redis-server redis-cli; then
  start_redis
  redis_server=$server
  on_redis=(-b "redis://127.0.0.1:$redis_port" --key x)
else
  left_out "dlock redis: redis-server and redis-tools are not installed"
fi

for method in table row version; do
  table "dlock mysql-$method" redis
  on_mysql=(-b "mysql-$method://root@127.0.0.1:$mysql_port/test" --key x)
  mysql_run="'$dlock' run ${on_mysql[*]} -- /bin/true"
  "$dlock" run "${on_mysql[@]}" -- /bin/true
  if [[ $redis_server ]]; then
    mapfile -t ms < <(run_ms 60 "$mysql_run" "'$dlock' run ${on_redis[*]} -- /bin/true")
    row "run /bin/true, ms (median)" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" -
  fi

  # From the last act of a job to the first one of the job that waits for its lock.
  for ((i = 0; i < rounds; ++i)); do
    hand_over "$dlock" run --quiet "${on_mysql[@]}" -- >>"$tmp/$method.us"
    [[ -z $redis_server ]] ||
      hand_over "$dlock" run --quiet "${on_redis[@]}" -- >>"$tmp/$method-redis.us"
  done
  us=$(median <"$tmp/$method.us")
  row "hand-over, us (median of $rounds)" "$us" "" - 5000
  if [[ $redis_server ]]; then
    other=$(median <"$tmp/$method-redis.us")
    row "  dlock redis" "$us" "$other" "$(ratio "$us" "$other")" -
  fi

  # Statements, of which many go in one text; both ends of the measurement cost some, too.
  first=$(asked)
  before=$(asked)
  "$dlock" run "${on_mysql[@]}" -- /bin/true
  row "statements of a run (acquire, release)" "$(($(asked) - before - (before - first)))" "" - -
done
[[ -z $redis_server ]] || stop "$redis_server"
stop "$mysql_server"
