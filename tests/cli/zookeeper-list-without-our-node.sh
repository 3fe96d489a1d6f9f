#!/usr/bin/env bash
# A list of children in which our own node is missing is no answer: the lock is not taken by it, and one such list costs
# one more question.  So is the name of a new node that is not below the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
. "$(dirname "$0")/endless.sh"
need python3

cd "$tmp"
start_endless zookeeper-empty-list
ends_endless 69 15 'deleted again and again' run -n -k job -b "zookeeper://127.0.0.1:$port" --connect-timeout 3 -- touch ran
[[ ! -e ran ]] || fail 'the command was run although its node was in no list'

start_zk a
python3 "$TEST_SOURCE/tests/cli/zookeeper_damage.py" "${zk_port[a]}" damage >damage.port &
wait_until 20 test -s damage.port
read -r port <damage.port
export DLOCK_BACKEND=zookeeper://127.0.0.1:$port
list=8 create=15

# damage KIND HOW: the next answer to such a request.
damage() {
  echo "$1 $2" >damage.new
  mv damage.new damage
}
queue_is_empty() { [[ -z $(zk a ls /dlock/job) ]]; }

for job in '' --shared '--slots 1'; do
  read -ra words <<<"$job"
  what="the list is empty: run $job"
  damage "$list" empty-list
  try 0 -w 20 -k job "${words[@]}" -- true
  [[ ! -e damage ]] || fail "no answer was damaged when $what"
  queue_is_empty || fail "there is a node when $what"
done

"$DLOCK" run -b "${zk_url[a]}" -k job -- sh -c 'touch started; until [ -e go ]; do sleep 0.05; done' &
holder=$!
wait_until 20 test -e started
damage "$list" empty-list
try 75 -n -k job -- touch ran
[[ ! -e damage && ! -e ran ]] || fail 'an empty list was taken for a free lock'
touch go
wait "$holder"

for how in short-path no-name; do
  what="the path of the new node is damaged: $how"
  damage "$create" "$how"
  try 0 -w 20 -k job -- true
  [[ ! -e damage ]] || fail "no answer was damaged when $what"
  queue_is_empty || fail "there is a node when $what"
done
