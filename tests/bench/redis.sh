# shellcheck shell=bash
# The redis backend on loopback, next to flock(1), etcdctl lock and redis-py.  After common.sh.
# etcd has its defaults: it syncs to the disk, in BENCH_DIR, which redis-server (no persistence) does
# not.  A lock that is granted twice after a power failure is the price; see dlock-redis(7).
: "${tmp:?bench.sh comes first}" "${dlock:?}" "${rounds:?}"

etcd_answers() { etcdctl endpoint health; }

start_etcd() {
  local attempt client peer
  for attempt in {1..10}; do
    client=http://127.0.0.1:$(some_port) peer=http://127.0.0.1:$(some_port)
    export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=$client
    if serve etcd_answers etcd --data-dir "$tmp/etcd-$attempt" --log-level error --logger zap \
      --listen-client-urls "$client" --advertise-client-urls "$client" \
      --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
      --initial-cluster "default=$peer"; then return; fi
  done
  echo "bench.sh: etcd does not run (attempt $attempt): $(<"$tmp/server.log")" >&2
  exit 1
}

if ! have redis-server redis-cli; then
  left_out "the redis backend: redis-server and redis-tools are not installed"
  return 0
fi
echo
table "dlock redis" other
start_redis
redis_server=$server
on_redis=(-b "redis://127.0.0.1:$redis_port" --key x)

etcd_server=
if have etcd etcdctl; then
  start_etcd
  etcd_server=$server
else
  left_out "etcdctl lock: etcd-server and etcd-client are not installed"
fi

# The distribution's python has python3-redis, another one before it in PATH need not.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import redis' 2>/dev/null; then
    python=$(command -v "$candidate")
    break
  fi
done
cat >"$tmp/lock.py" <<'END_PY'
import subprocess
import sys

import redis

client = redis.Redis(port=int(sys.argv[1]))
lock = client.lock("py", timeout=30)
lock.acquire()
subprocess.run(sys.argv[2:])
lock.release()
END_PY

# A job that does nothing.
redis_run="'$dlock' run ${on_redis[*]} -- /bin/true"
mapfile -t ms < <(run_ms 60 "$redis_run" "flock $tmp/flock /bin/true")
row "run /bin/true, ms (median); flock" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 2.5
if [[ $etcd_server ]]; then
  mapfile -t ms < <(run_ms 20 "$redis_run" "etcdctl lock x /bin/true")
  row "  etcdctl lock" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 0.25
fi
if [[ $python ]]; then
  mapfile -t ms < <(run_ms 12 "$redis_run" "$python $tmp/lock.py $redis_port /bin/true")
  row "  redis-py" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 0.067
else
  left_out "redis-py: python3-redis is not installed"
fi

# The same on five servers: what a majority costs.
servers=127.0.0.1:$redis_port one_port=$redis_port more_servers=()
for i in 2 3 4 5; do
  start_redis
  more_servers+=("$server")
  servers+=,127.0.0.1:$redis_port
done
redis_port=$one_port
mapfile -t ms < <(run_ms 60 "'$dlock' run -b redlock://$servers --key x -- /bin/true" "$redis_run")
row "  redlock on 5 servers; dlock redis" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 1.6
for server in "${more_servers[@]}"; do stop "$server"; done

# From the last act of a job to the first one of the job that waits for its lock.
for ((i = 0; i < rounds; ++i)); do
  hand_over "$dlock" run --quiet "${on_redis[@]}" -- >>"$tmp/redis-dlock.us"
  hand_over flock "$tmp/flock" >>"$tmp/redis-flock.us"
  [[ -z $etcd_server ]] || hand_over etcdctl lock x >>"$tmp/redis-etcd.us"
done
us=$(median <"$tmp/redis-dlock.us")
flock_us=$(median <"$tmp/redis-flock.us")
row "hand-over, us (median of $rounds); flock" "$us" "$flock_us" "$(ratio "$us" "$flock_us")" 1.5
if [[ $etcd_server ]]; then
  etcd_us=$(median <"$tmp/redis-etcd.us")
  row "  etcdctl lock" "$us" "$etcd_us" "$(ratio "$us" "$etcd_us")" 1
  stop "$etcd_server"
fi

# What the server is asked.
scripts_run() { redis-cli -p "$redis_port" info commandstats | awk -F'[=,]' '/^cmdstat_evalsha:/ { print $2 }'; }
redis-cli -p "$redis_port" config resetstat >/dev/null
"$dlock" run "${on_redis[@]}" -- /bin/true
row "scripts of a run (acquire, release)" "$(scripts_run)" "" - 2

# A holder while its job runs, and a job that waits for it, with leases of 3 s.
rm -f "$tmp/idle"
"$dlock" run "${on_redis[@]}" --ttl 3 -- "$tmp/stamp" "$tmp/idle" 60000 &
holder=$!
until [[ -e $tmp/idle ]]; do sleep 0.01; done
"$dlock" run --quiet "${on_redis[@]}" --ttl 3 -- /bin/true &
waiter=$!
sleep 3
mapfile -t pids < <(dlock_tree "$holder")
mapfile -t waiting < <(dlock_tree "$waiter")
redis-cli -p "$redis_port" config resetstat >/dev/null
before=$(switches "${pids[@]}") waiting_before=$(switches "${waiting[@]}")
sleep 12
wakes=$(($(switches "${pids[@]}") - before)) waiting_wakes=$(($(switches "${waiting[@]}") - waiting_before))
row "wake-ups of a holder per ttl, but for replies" "$(ratio $((wakes - $(scripts_run))) 4)" "" - 4
row "wake-ups of a waiter per ttl" "$(ratio $waiting_wakes 4)" "" - -
row "renewals per ttl" "$(ratio "$(scripts_run)" 4)" "" - -
row "memory of a waiter, KiB: resident" "$(memory Rss "${waiting[@]}")" "" "" -
stop "$waiter" "$holder"
stop "$redis_server"
