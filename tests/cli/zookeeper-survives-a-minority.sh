#!/usr/bin/env bash
# ctest: cost 25
# A job on three ZooKeeper servers goes on when the leader is killed, and its waiters keep their places;
# with two of three gone it is ended in time, and nobody gets in.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
need pgrep

cd "$tmp"
names=(a b c)
start_zk_ensemble "${names[@]}"
DLOCK_SERVERS=127.0.0.1:${zk_port[a]},127.0.0.1:${zk_port[b]},127.0.0.1:${zk_port[c]}
export DLOCK_BACKEND=zookeeper DLOCK_SERVERS

cat >job.sh <<'SH'
#!/bin/sh
echo "$1" >>order
touch "$1.held"
until test -e "$1.go"; do date +%s%3N >"$1.new" && mv "$1.new" "$1.alive"; sleep 0.05; done
SH
chmod +x job.sh
declare -A pid=()
start() { # NAME [OPTIONS]
  local name=$1
  shift
  "$DLOCK" run -k job "$@" -- ./job.sh "$name" 2>"$name.err" &
  pid[$name]=$!
}
finish() {
  touch "$1.go"
  expect_status 0 wait "${pid[$1]}"
}
waiting() { (($("$DLOCK" show job --output waiting | sed -n 2p) == $1)); }

# The servers of a busy machine may need some seconds to elect a leader.
start first --ttl 20s
wait_until 20 test -e first.held
start second --ttl 20s
wait_until 20 waiting 1
start third --ttl 20s
wait_until 20 waiting 2

leader=$(zk_leader "${names[@]}")
stop_zk "$leader"
new_leader() { zk_leader "${names[@]}" >leader; }
wait_until 30 new_leader
sleep 7  # a renewal
gone "${pid[first]}" && fail "the job was ended with the leader: $(<first.err)"
wait_until 20 waiting 2
finish first
wait_until 20 test -e second.held
finish second
wait_until 20 test -e third.held
finish third
assert_equal 'first second third' "$(xargs <order)" "the order in which they got the lock"
assert_lacks "$(cat ./*.err)" lost "what they say"
restart_zk "$leader"

# Two of three.
start fourth --ttl 4s --status-file status
wait_until 20 test -e fourth.held
sleep 2
for name in "${names[@]}"; do
  [[ $name == "$leader" ]] || stop_zk "$name"
done
stopped=$(now_ms)
wait_until 20 gone "${pid[fourth]}"
expect_status 79 wait "${pid[fourth]}"
((took = $(<fourth.alive) - stopped, took < 4000)) || fail "the job was alive $took ms after the servers"
assert_contains "$(<status)" '"outcome":"lost"'
begun=$(now_ms)
expect_status 69 "$DLOCK" run -k job --connect-timeout 1s -- true 2>err
((took = $(now_ms) - begun, took < 5000)) || fail "it took $took ms to say that the servers are gone"
for name in "${names[@]}"; do
  assert_contains "$(<err)" "127.0.0.1:${zk_port[$name]}" "stderr without a majority"
done
for name in "${names[@]}"; do
  [[ $name == "$leader" ]] || restart_zk "$name"
done
wait_until 20 "$DLOCK" run -q -n -k job -- true
