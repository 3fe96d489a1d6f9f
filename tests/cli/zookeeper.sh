# shellcheck shell=bash disable=SC2034  # the arrays are for the scripts
# ZooKeeper servers for a script, each known by a name of its own.  After lib.sh:
#   . "$(dirname "$0")/zookeeper.sh"
# skips the test if Debian's zookeeper is not installed.  What is started here ends with the script,
# however that ends.  With start_proxy (proxy.sh).  Not from within $( ) or ( ).
#
#   ${zk_port[NAME]}  ${zk_pid[NAME]}  ${zk_dir[NAME]}  ${zk_url[NAME]}  of start_zk
: "${tmp:?lib.sh comes first}"
need java setpriv
[[ -r /usr/share/java/zookeeper.jar ]] || skip "Debian's zookeeper is not installed"
. "${BASH_SOURCE[0]%/*}/ports.sh"
. "${BASH_SOURCE[0]%/*}/proxy.sh"
declare -gA zk_port=() zk_pid=() zk_dir=() zk_url=()
zk_java=()  # more words for the JVM of servers that are started after this

# start_zk NAME [LINE]...: an empty server on a free port of 127.0.0.1 that serves, with these lines of
# zoo.cfg after our own: a tick of 100 ms, sessions of 200 ms to 60 s.
start_zk() {
  local name=$1
  shift
  lib_zk_prepare "$name" "$@"
  launch_zk "$name"
  wait_until 30 zk_serves "$name"
}

# start_zk_ensemble NAME...: these, empty, with a leader; the tick is 200 ms.
start_zk_ensemble() {
  local name i=0 peers election lines=(tickTime=200 initLimit=50 syncLimit=25)
  local numbers=("$@")
  for name in "$@"; do
    reserve_port peers
    reserve_port election
    lines+=("server.$((++i))=127.0.0.1:$peers:$election")
  done
  for i in "${!numbers[@]}"; do
    name=${numbers[i]}
    lib_zk_prepare "$name" "${lines[@]}"
    echo $((i + 1)) >"${zk_dir[$name]}/data/myid"
    launch_zk "$name"
  done
  for name in "$@"; do wait_until 60 zk_serves "$name"; done
}

# stop_zk NAME: kills it, as a power failure would, but for the FIN that the kernel sends.
stop_zk() {
  kill -KILL "${zk_pid[$1]}"
  wait "${zk_pid[$1]}" 2>/dev/null || true
}

# restart_zk NAME: starts it once more, with the same port and data; stops it if it still runs.
# erase_zk NAME: the same, but it has forgotten everything.
restart_zk() {
  gone "${zk_pid[$1]}" || stop_zk "$1"
  launch_zk "$1"
  wait_until 30 zk_serves "$1"
}
erase_zk() {
  stop_zk "$1"
  rm -r "${zk_dir[$1]}/data"
  mkdir "${zk_dir[$1]}/data"
  restart_zk "$1"
}

# pause_zk NAME, resume_zk NAME: when this has returned it does nothing, with its connections open.
pause_zk() {
  kill -STOP "${zk_pid[$1]}"
  wait_until 10 grep -q '^State:[[:space:]]*[Tt]' "/proc/${zk_pid[$1]}/status"
}
resume_zk() { kill -CONT "${zk_pid[$1]}"; }

# zk NAME COMMAND...: dlock-zk, see tests/support/zookeeper_main.cpp.
zk() {
  local name=$1
  shift
  "$TEST_ZK" "${zk_port[$name]}" "$@"
}

# zk_number NAME FIELD: one of `mntr`, e.g. zk_watch_count.
zk_number() { zk "$1" ask mntr | awk -F'\t' -v field="$2" '$1 == field { print $2 }'; }

# zk_serves NAME: it answers, and has a leader.  zk_leader NAME...: which of these leads now.
zk_serves() {
  ! gone "${zk_pid[$1]}" || fail "zookeeper does not run: $(<"${zk_dir[$1]}/output")"
  zk "$1" ask srvr 2>/dev/null | grep -q '^Mode: '
}
zk_leader() {
  local name
  for name in "$@"; do
    if zk "$name" ask srvr 2>/dev/null | grep -qx 'Mode: leader'; then
      echo "$name"
      return
    fi
  done
  return 1
}

lib_zk_prepare() {
  local name=$1 dir=$tmp/zk-$1
  shift
  mkdir -p "$dir/data"
  zk_dir[$name]=$dir
  reserve_port "zk_port[$name]"
  zk_url[$name]=zookeeper://127.0.0.1:${zk_port[$name]}
  printf '%s\n' "dataDir=$dir/data" "clientPort=${zk_port[$name]}" clientPortAddress=127.0.0.1 \
    tickTime=100 minSessionTimeout=200 maxSessionTimeout=60000 maxClientCnxns=0 \
    admin.enableServer=false '4lw.commands.whitelist=*' "$@" >"$dir/zoo.cfg"
}

# launch_zk NAME: starts it and does not wait until it serves.
launch_zk() {
  local dir=${zk_dir[$1]} jars=/usr/share/java
  setpriv --pdeathsig KILL java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData \
    -Xshare:auto -Xmx128m -Djava.net.preferIPv4Stack=true -Dzookeeper.jmx.log4j.disable=true \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=error "${zk_java[@]}" \
    -cp "$jars/zookeeper.jar:$jars/slf4j-simple.jar" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg" \
    >>"$dir/output" 2>&1 </dev/null &
  zk_pid[$1]=$!
}
