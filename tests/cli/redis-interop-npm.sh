#!/usr/bin/env bash
# node-redlock (npm) and dlock wait for each other's locks, on one server and on five, and neither
# releases one of the other.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need node
export NODE_PATH=$TEST_SOURCE/build/peers/node_modules
[[ -d $NODE_PATH/redlock ]] || skip "npm's redlock is not installed in build/peers (tests/run.sh does it)"

cd "$tmp"
mkfifo job

tell_node() { echo "$*" >&3; }
# expect_node WORD: the next line of node begins with it; leaves what follows in $said.
expect_node() {
  local word
  read -r -t 20 -u 4 word said || fail "node did not say $1"
  [[ $word == "$1" ]] || fail "node said $word $said, not $1"
}
# waits: dlock does, at one of the servers.
waits() {
  local server
  for server in "${servers[@]}"; do if (($(rcli "$server" exists '{k}:queue'))); then return; fi; done
  return 1
}
# value: of the lock, on most servers.  One of five can have another: node asked it for the lock in vain, or
# its key expired after those of the others, and dlock has the lock on the others only.
value() {
  local server
  for server in "${servers[@]}"; do rcli "$server" get k; done | sort | uniq -c |
    awk -v servers="${#servers[@]}" '$1 * 2 > servers { print $2 }'
}
now() { echo "${EPOCHREALTIME/./}"; }  # us

# start_job: dlock run in the background, which stamps when its command starts, and ends
# at a line on ./job.
start_job() {
  rm -f started
  "$DLOCK" run --quiet --prefix '' -b "$backend" -k k -- \
    bash -c 'echo "${EPOCHREALTIME/./}" >starting; mv starting started; read -r <job' 3>&- 4<&- &
  dlock=$!
}
# report WHAT FROM TARGET: says how long after FROM the job started.
report() {
  local ms=$((($(<started) - $2) / 1000))
  echo "$1: dlock's job starts after $ms ms (target: $3)"
  ((ms >= 0 && ms < $(here 1000))) || fail "$1: dlock's job started after $ms ms"
}
renewals() {
  local calls
  calls=$(rcli "${servers[0]}" info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p')
  echo "${calls:-0}"  # a server that was not asked at all has no such line
}

# check BACKEND SERVER...
check() {
  local backend=$1
  shift
  local servers=("$@") urls=() server value asked expires released
  for server in "${servers[@]}"; do urls+=("${redis_url[$server]}"); done
  mkfifo to_node from_node
  node "$TEST_SOURCE/tests/peers/redlock.js" "${urls[@]}" <to_node >from_node &
  exec 3>to_node 4<from_node

  # dlock waits until node releases.
  for _ in 1 2 3; do
    tell_node acquire k 60000
    expect_node held
    start_job
    wait_until 10 waits
    [[ ! -e started ]] || fail "OVERLAP: both hold the lock"
    released=$(now)
    tell_node release
    expect_node released
    wait_until 10 test -e started
    report "released by node" "$released" 50
    echo end >job
    expect_status 0 wait "$dlock"
  done

  # And until a lock that node does not release expires; node's late release leaves dlock's alone.
  tell_node acquire k 1000
  expect_node held
  start_job
  wait_until 10 waits
  asked=$(now)
  expires=$((asked + $(rcli "${servers[0]}" pttl k) * 1000))
  wait_until 10 test -e started
  report "expired" "$expires" 100
  value=$(value)
  [[ $value ]] || fail "dlock holds no lock on most servers"
  tell_node release
  expect_node refused
  assert_equal "$value" "$(value)" "dlock's lock after node's late release"

  # What dlock has been told about node's lock is over; its own renewals do not call for another.
  rcli "${servers[0]}" config resetstat >rcli.out
  sleep 2  # a second after the start it begins to renew: once, and then in 10 s
  (($(renewals) <= 3)) || fail "$(renewals) renewals in 2 s"

  # Node tries in vain until dlock releases.
  tell_node acquire k 60000
  expect_node busy
  assert_equal "$value" "$(value)" "dlock's lock that node wants"
  echo end >job
  expect_status 0 wait "$dlock"
  expect_node held
  assert_equal "$said" "$(value)" "node's lock"
  tell_node release
  expect_node released

  # A lock that dlock has lost to node is node's: dlock's late release leaves it alone.
  start_job
  wait_until 10 test -e started
  for server in "${servers[@]}"; do rcli "$server" del k >rcli.out; done
  tell_node acquire k 60000
  expect_node held
  echo end >job
  expect_status 79 wait "$dlock"
  assert_equal "$said" "$(value)" "node's lock after dlock's late release"
  (($(rcli "${servers[0]}" pttl k) > 50000)) || fail "dlock changed the ttl of node's lock"

  exec 3>&- 4<&-
  rm to_node from_node
}

start_redis r
check "${redis_url[r]}" r
addresses=
for name in a b c d e; do
  start_redis "$name"
  addresses+=${addresses:+,}127.0.0.1:${redis_port[$name]}
done
check "redlock://$addresses" a b c d e
