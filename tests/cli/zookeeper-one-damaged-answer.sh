#!/usr/bin/env bash
# ctest: cost 10
# One answer of a ZooKeeper server is damaged, and the server is well again: the job keeps its lock, the lock is
# released, and what is to be remembered is.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
. "$(dirname "$0")/trouble.sh"
need python3

cd "$tmp"
start_zk a
python3 "$TEST_SOURCE/tests/cli/zookeeper_damage.py" "${zk_port[a]}" damage >damage.port &
wait_until 20 test -s damage.port
read -r port <damage.port
export DLOCK_BACKEND=zookeeper://127.0.0.1:$port
remove=2 sync=9 multi=14 create=15

# damage KIND HOW: the next answer to such a request.
damage() {
  echo "$1 $2" >damage.new
  mv damage.new damage
}
done_damage() { [[ ! -e damage ]]; }
queue_is_empty() { [[ -z $(zk a ls /dlock/job) ]]; }

what='the answer to a renewal is damaged'
run_job 8s ./job.sh 7
damage "$multi" truncate
wait_until 8 done_damage
wait_until 8 grep -q 'renewed "job" again' err
touch go
job_ends 7 "$what"
outcome_is completed "$what"
assert_contains "$(<err)" 'the answer is damaged' "stderr when $what"
assert_lacks "$(<err)" 'not released' "stderr when $what"
queue_is_empty || fail "there is a node when $what"

for job in "run $remove truncate" "run --slots 2 $multi truncate" "run --slots 2 $multi more-parts" \
  "run --slots 2 $multi fewer-parts" "once --remember 1h $multi truncate"; do
  what="the last answer is damaged: $job"
  read -ra words <<<"$job"
  rm -f started go
  "$DLOCK" "${words[@]::${#words[@]}-2}" -k job --ttl 8s --status-file status -- ./job.sh 2>err &
  holder=$!
  wait_until 20 test -e started
  damage "${words[@]: -2}"
  touch go
  job_ends 0 "$what"
  done_damage || fail "no answer was damaged: $what"
  outcome_is completed "$what"
  assert_contains "$(<err)" 'the answer is damaged' "stderr when $what"
  assert_lacks "$(<err)" 'not released' "stderr when $what"
  queue_is_empty || fail "there is a node when $what"
done
assert_contains "$("$DLOCK" list --done)" job "what is remembered"

for how in short-path no-name; do
  what="the path of the new node is damaged: $how"
  damage "$create" "$how"
  try 0 -w 20 -k job --ttl 8s -- true
  done_damage || fail "no answer was damaged: $what"
  queue_is_empty || fail "there is a node when $what"
done

what='a waiter is answered when it has asked nothing'
DLOCK_BACKEND=${zk_url[a]} run_job 8s ./job.sh
"$DLOCK" run -k job --ttl 16s -- true 2>said &
waiter=$!
wait_until 20 eval '(($(zk a ls /dlock/job | wc -l) == 2))'
damage "$sync" twice
wait_until 8 grep -q late damage.port
touch go
wait "$waiter" || fail "status $? when $what ($(<said))"
job_ends 0 "$what"
