# shellcheck shell=bash
# The zookeeper backend on loopback, next to kazoo and to the redis backend.  After common.sh.
# The server syncs each write to the disk, in BENCH_DIR; redis-server has no persistence here.
: "${tmp:?bench.sh comes first}" "${dlock:?}" "${rounds:?}"
server=  # of serve

jars=/usr/share/java
if ! have java || [[ ! -r $jars/zookeeper.jar ]]; then
  left_out "the zookeeper backend: zookeeper is not installed"
  return 0
fi

# zk_ask WORD: what the server says to a four-letter word.
zk_ask() {
  local fd
  exec {fd}<>"/dev/tcp/127.0.0.1/$zk_port" || return 1
  printf '%s' "$1" >&"$fd"
  timeout 1 cat <&"$fd"
  exec {fd}>&-
}
zk_answers() { zk_ask srvr | grep '^Mode: '; }
received() { zk_ask mntr | awk '$1 == "zk_packets_received" { print $2 }'; }

start_zookeeper() {
  local attempt
  for attempt in {1..10}; do
    zk_port=$(some_port)
    mkdir "$tmp/zookeeper-$attempt"
    printf '%s\n' "dataDir=$tmp/zookeeper-$attempt" "clientPort=$zk_port" tickTime=2000 \
      clientPortAddress=127.0.0.1 admin.enableServer=false '4lw.commands.whitelist=*' \
      maxClientCnxns=0 >"$tmp/zoo.cfg"
    if serve zk_answers java -XX:+UseSerialGC -Xmx256m -cp "$jars/zookeeper.jar" \
      org.apache.zookeeper.server.quorum.QuorumPeerMain "$tmp/zoo.cfg"; then return; fi
  done
  echo "bench.sh: zookeeper does not run (attempt $attempt): $(<"$tmp/server.log")" >&2
  exit 1
}

echo
table "dlock zookeeper" other
start_zookeeper
zk_server=$server
on_zk=(-b "zookeeper://127.0.0.1:$zk_port" --key x)
zk_run="'$dlock' run ${on_zk[*]} -- /bin/true"
# The server is Java: it takes some hundred runs until it is as fast as it gets.
for ((i = 0; i < 300; ++i)); do "$dlock" run "${on_zk[@]}" -- /bin/true; done

# The distribution's python has python3-kazoo, another one before it in PATH need not.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import kazoo' 2>/dev/null; then
    python=$(command -v "$candidate")
    break
  fi
done
cat >"$tmp/kazoo_run.py" <<'END_PY'
import subprocess
import sys

from kazoo.client import KazooClient

client = KazooClient(hosts="127.0.0.1:" + sys.argv[1], timeout=30)
client.start()
with client.Lock("/py/x"):
    subprocess.run(sys.argv[2:])
client.stop()
END_PY

# A job that does nothing.
if [[ $python ]]; then
  mapfile -t ms < <(run_ms 12 "$zk_run" "$python $tmp/kazoo_run.py $zk_port /bin/true")
  row "run /bin/true, ms (median); kazoo" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 0.125
else
  left_out "kazoo: python3-kazoo is not installed"
fi
redis_server=
if have redis-server redis-cli; then
  start_redis
  redis_server=$server
  on_redis=(-b "redis://127.0.0.1:$redis_port" --key x)
  mapfile -t ms < <(run_ms 60 "$zk_run" "'$dlock' run ${on_redis[*]} -- /bin/true")
  row "  dlock redis" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" -
else
  left_out "dlock redis: redis-server and redis-tools are not installed"
fi

# From the last act of a job to the first one of the job that waits for its lock.
for ((i = 0; i < rounds; ++i)); do
  hand_over "$dlock" run --quiet "${on_zk[@]}" -- >>"$tmp/zk-dlock.us"
  [[ -z $redis_server ]] || hand_over "$dlock" run --quiet "${on_redis[@]}" -- >>"$tmp/zk-redis.us"
done
us=$(median <"$tmp/zk-dlock.us")
if [[ $redis_server ]]; then
  other=$(median <"$tmp/zk-redis.us")
  row "hand-over, us (median of $rounds); dlock redis" "$us" "$other" "$(ratio "$us" "$other")" -
fi
if [[ $python ]]; then
  for ((i = 0; i < rounds / 3; ++i)); do
    hand_over "$python" "$tmp/kazoo_run.py" "$zk_port" >>"$tmp/zk-kazoo.us"
  done
  other=$(median <"$tmp/zk-kazoo.us")
  row "  kazoo" "$us" "$other" "$(ratio "$us" "$other")" 1
fi

# What the server is asked: session, create, list; delete, end of session.
first=$(received)
before=$(received)
"$dlock" run "${on_zk[@]}" -- /bin/true
row "requests of a run (acquire, release)" "$(($(received) - before - (before - first)))" "" - 5

# A holder while its job runs, and a job that waits for it.
rm -f "$tmp/idle"
"$dlock" run "${on_zk[@]}" --ttl 6 -- "$tmp/stamp" "$tmp/idle" 60000 &
holder=$!
until [[ -e $tmp/idle ]]; do sleep 0.01; done
"$dlock" run --quiet "${on_zk[@]}" --ttl 6 -- /bin/true &
waiter=$!
sleep 3
mapfile -t pids < <(dlock_tree "$holder")
mapfile -t waiting < <(dlock_tree "$waiter")
before=$(switches "${pids[@]}") waiting_before=$(switches "${waiting[@]}")
sleep 12
row "wake-ups of a holder per ttl" "$(ratio $(($(switches "${pids[@]}") - before)) 2)" "" - -
row "wake-ups of a waiter per ttl" "$(ratio $(($(switches "${waiting[@]}") - waiting_before)) 2)" "" - -
row "memory of a waiter, KiB: resident" "$(memory Rss "${waiting[@]}")" "" "" -
stop "$waiter" "$holder"
[[ -z $redis_server ]] || stop "$redis_server"
stop "$zk_server"
