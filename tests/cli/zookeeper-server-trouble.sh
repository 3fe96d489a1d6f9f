#!/usr/bin/env bash
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

what='the server stops for less than the margin'
hold 6s ./job.sh 7
pause_zk a
wait_until 6 one_warning
resume_zk a
wait_until 6 grep -q 'renewed "job" again' err
touch go
job_ends 7 "$what"
outcome_is completed "$what"
assert_equal 2 "$(wc -l <err)" "lines on stderr when $what ($(<err))"
assert_contains "$(<err)" "zookeeper 127.0.0.1:${zk_port[a]}: " "stderr when $what"
nothing_is_left || fail "there are nodes when $what"

what='the server is restarted'
hold 6s ./job.sh 7
restart_zk a
sleep 2
touch go
job_ends 7 "$what"
outcome_is completed "$what"

what='the server stops for longer'
hold 3s ./stubborn.sh
sleep 2  # and with renewals behind it
paused=$(now_ms)
pause_zk a
flock oracle true  # until the last of them is dead
died=$(now_ms)
# The server heard of the session before it was stopped, so it may end it 3 s after that.
((died < paused + 3000)) || fail "the last of the tree died $((died - paused)) ms after the stop"
((died > paused + 500)) || fail "the job was ended $((died - paused)) ms after the stop: too early"
echo "$what: the tree is dead $((died - paused)) ms after the stop, with a ttl of 3 s"
job_ends 79 "$what"
outcome_is lost "$what"
assert_contains "$(<err)" 'lost "job"' "stderr when $what"
assert_contains "$(<err)" 'ending ./stubborn.sh' "stderr when $what"
resume_zk a
wait_until 20 nothing_is_left

# The same by the server's own word: it hears of the job no more, and deletes the node in the end.
what='the network swallows everything'
start_proxy p "${zk_port[a]}"
DLOCK_BACKEND=zookeeper://127.0.0.1:${proxy_port[p]} hold 2s ./stubborn.sh
sleep 1.5
proxy p blackhole
wait_until 20 nothing_is_left
flock -n oracle true || fail "the server has ended the session, and the job is alive"
job_ends 79 "$what"
outcome_is lost "$what"
proxy p pass

# lost WHAT: the holder ends with 79 within a second.
lost() {
  local begun
  begun=$(now_ms)
  job_ends 79 "$1"
  (($(now_ms) - begun < 1000)) || fail "it took $(($(now_ms) - begun)) ms to notice that $1"
  echo "$1: noticed after $(($(now_ms) - begun)) ms"
  outcome_is lost "$1"
  assert_contains "$(<err)" 'lost "job"' "stderr when $1"
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
lost 'the server has ended the session'
assert_contains "$(<err)" expired "stderr when the session has expired"

hold 30s sh -c 'touch started; exec sleep 1000'
wait_until 10 listens
zk a rm "$node"
lost 'the node is deleted'
assert_contains "$(<err)" "the node $node was deleted" "stderr when the node is deleted"

hold 30s sh -c 'touch started; exec sleep 1000'
wait_until 10 listens
"$DLOCK" force-release --yes --reason 'the disk is full' job 2>said
lost 'it is force-released'
assert_contains "$(<err)" 'the disk is full' "stderr when it is force-released"

# A young job: nobody listens yet, but the first look tells.
hold 30s sh -c 'touch started; exec sleep 1000'
zk a rm "$node"
begun=$(now_ms)
job_ends 79 'the node of a young job is deleted'
(($(now_ms) - begun < 2500)) || fail "a young job heard after $(($(now_ms) - begun)) ms that its node is gone"
