#!/usr/bin/env bash
# ctest: cost 30
# A ZooKeeper server that stops for less than the margin, or is restarted, costs a warning; one that
# stays silent ends the job before its session could have expired; and whoever has lost session or node
# hears of it within a second.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
. "$(dirname "$0")/trouble.sh"
cd "$tmp"

start_zk a
export DLOCK_BACKEND=${zk_url[a]}
lock=/dlock/job

# hold TTL COMMAND...: a job under the lock; its stderr goes to err, the node to $node.
hold() {
  run_job "$@"
  node=$lock/$(zk a ls $lock)
}
nothing_is_left() { [[ -z $(zk a ls $lock) ]]; }

hold 6s ./job.sh 7
survives_a_stop zk a "zookeeper 127.0.0.1:${zk_port[a]}: "
nothing_is_left || fail "LEFT BEHIND: there are nodes after a short stop"

what='the server is restarted'
hold 60s ./job.sh 7
restart_zk a
sleep 2
touch go
job_ends 7 "$what"
outcome_is completed "$what"

hold 3s ./stubborn.sh
sleep 2  # and with renewals behind it
# The server heard of the session before it was stopped, so it may end it 3 s after that.
dies_of_a_stop zk a $(($(now_ms) + 3000))
((left < 2500)) || fail "the job was ended $left ms before it had to be: too early"
wait_until 20 nothing_is_left

# The same by the server's own word: it hears of the job no more, and deletes the node in the end.
what='the network swallows everything'
start_proxy p "${zk_port[a]}"
DLOCK_BACKEND=zookeeper://127.0.0.1:${proxy_port[p]} hold 2s ./stubborn.sh
sleep 1.5
proxy p blackhole
wait_until 20 nothing_is_left
flock -n oracle true || fail "the server has ended the session, and the job is alive: OUTLIVED"
job_ends 79 "$what"
outcome_is lost "$what"
proxy p pass

# gone_when WHAT: which is noticed within a second.
gone_when() {
  lost 1000 "$1"
  nothing_is_left || fail "there are nodes when $1"
}
# The keeper listens once the job has run for a second.
listens() { (($(zk_number a zk_watch_count) == 1)); }

DLOCK_BACKEND=zookeeper://127.0.0.1:${proxy_port[p]} hold 30s sh -c 'touch started; exec sleep 1000'
wait_until 10 listens
read -r _ session _ <<<"$(zk a stat "$node")"
proxy p refuse  # see end_session_of in tests/contract
zk a expire "$session"
proxy p pass
gone_when 'the server has ended the session'
assert_contains "$(<err)" expired "stderr when the session has expired"

hold 30s sh -c 'touch started; exec sleep 1000'
wait_until 10 listens
zk a rm "$node"
gone_when 'the node is deleted'
assert_contains "$(<err)" "the node $node was deleted" "stderr when the node is deleted"

hold 30s sh -c 'touch started; exec sleep 1000'
wait_until 10 listens
"$DLOCK" force-release --yes --reason 'the disk is full' job 2>said
gone_when 'it is force-released'
assert_contains "$(<err)" 'the disk is full' "stderr when it is force-released"

# A young job: nobody listens yet, but the first look tells.
hold 30s sh -c 'touch started; exec sleep 1000'
zk a rm "$node"
begun=$(now_ms)
job_ends 79 'the node of a young job is deleted'
(($(now_ms) - begun < 2500)) || fail "a young job heard after $(($(now_ms) - begun)) ms that its node is gone"
