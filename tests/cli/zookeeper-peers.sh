# shellcheck shell=bash disable=SC2034  # peer_at is for the scripts
# Other libraries' locks on ZooKeeper, next to dlock's on the same path.  After lib.sh:
#   . "$(dirname "$0")/zookeeper-peers.sh"
# starts the server zk and goes to $tmp.  A peer is a program of tests/peers; of one at a time.
. "${BASH_SOURCE[0]%/*}/zookeeper.sh"

start_zk zk
export DLOCK_BACKEND=${zk_url[zk]}
cd "$tmp" || exit
mkfifo to_peer from_peer job
peer_at=(127.0.0.1:"${zk_port[zk]}" /dlock/k)

# start_peer COMMAND...: one that is given servers and path.
start_peer() {
  "$@" <to_peer >from_peer 2>peer.err &
  peer=$!
  exec 3>to_peer 4<from_peer
}
stop_peer() {
  exec 3>&- 4<&-
  wait "$peer" || fail "the peer ended with status $?: $(<peer.err)"
}
tell_peer() { echo "$1" >&3; }
# expect_peer WORD: that is what it says next.
expect_peer() {
  local word
  read -r -t 30 -u 4 word || fail "the peer did not say $1: $(<peer.err)"
  assert_equal "$1" "$word" "what the peer says"
}
peer_is_silent() {
  local word
  ! read -r -t 0.3 -u 4 word || fail "$1: the peer says $word"
}
# queue_is N: so many hold or wait; the number of a slot is beside them.
queue_is() { (($(zk zk ls /dlock/k | grep -cv '^slot-') == $1)); }

# start_job ARGUMENTS...: dlock run in the background, whose command ends at a line on ./job.
start_job() {
  rm -f started
  "$DLOCK" run --quiet -k k "$@" -- \
    bash -c 'echo "${EPOCHREALTIME/./}" >starting; mv starting started; read -r <job' 3>&- 4<&- &
  job_pid=$!
}
end_job() {
  echo end >job
  expect_status 0 wait "$job_pid"
}

# excluded WHAT ARGUMENTS...: dlock run ARGUMENTS waits for the peer, and begins when it releases.
excluded() {
  local what=$1 released ms
  shift
  tell_peer acquire
  expect_peer asking
  expect_peer held
  expect_status 75 "$DLOCK" run -q -n -k k "$@" -- true
  start_job "$@"
  wait_until 20 queue_is 2
  [[ ! -e started ]] || fail "OVERLAP: $what: both hold the lock"
  released=${EPOCHREALTIME/./}
  tell_peer release
  expect_peer released
  wait_until 20 test -e started
  ms=$((($(<started) - released) / 1000))
  echo "$what: dlock's job starts $ms ms after the peer is told to release"
  ((ms < 1500)) || fail "$what: dlock's job started after $ms ms"
  end_job
}
# excludes WHAT ARGUMENTS...: the peer waits for dlock run ARGUMENTS, and gets it when that ends.
excludes() {
  local what=$1
  shift
  start_job "$@"
  wait_until 20 test -e started
  tell_peer acquire
  expect_peer asking
  wait_until 20 queue_is 2
  peer_is_silent "$what"
  end_job
  expect_peer held
  tell_peer release
  expect_peer released
}
# together WHAT ARGUMENTS...: both have it at once.
together() {
  local what=$1
  shift
  start_job "$@"
  wait_until 20 test -e started
  tell_peer acquire
  expect_peer asking
  expect_peer held
  queue_is 2 || fail "$what: the queue is $(zk zk ls /dlock/k)"
  end_job
  start_job "$@"
  wait_until 20 test -e started
  end_job
  tell_peer release
  expect_peer released
}
# shown_as NAME: what the peer's lock is called.
shown_as() {
  tell_peer acquire
  expect_peer asking
  expect_peer held
  assert_contains "$("$DLOCK" show --json k)" "\"foreign\": \"$1\"" "how the peer's lock is shown"
  tell_peer release
  expect_peer released
}
