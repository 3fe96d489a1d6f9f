#!/usr/bin/env bash
# ctest: serial
# node-redlock (npm) and dlock wait for each other's locks, and neither releases one of the other.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need node
export NODE_PATH=$DLOCK_SOURCE/build/peers/node_modules
[[ -d $NODE_PATH/redlock ]] || skip "npm's redlock is not installed in build/peers (tests/run.sh does it)"

start_redis r
cd "$tmp"
mkfifo to_node from_node job
node "$DLOCK_SOURCE/tests/peers/redlock.js" "${redis_url[r]}" <to_node >from_node &
exec 3>to_node 4<from_node

tell_node() { echo "$*" >&3; }
# expect_node WORD: the next line of node begins with it; leaves what follows in $said.
expect_node() {
  local word
  read -r -t 20 -u 4 word said || fail "node did not say $1"
  [[ $word == "$1" ]] || fail "node said $word $said, not $1"
}
has_key() { (($(rcli r exists "$1"))); }
now() { echo "${EPOCHREALTIME/./}"; }  # us

# start_job: dlock run in the background, which stamps when its command starts, and ends
# at a line on ./job.
start_job() {
  rm -f started
  "$DLOCK" run --quiet --prefix '' -b "${redis_url[r]}" -k k -- \
    bash -c 'echo "${EPOCHREALTIME/./}" >starting; mv starting started; read -r <job' 3>&- 4<&- &
  dlock=$!
}
# report WHAT FROM TARGET: says how long after FROM the job started.
report() {
  local ms=$((($(<started) - $2) / 1000))
  echo "$1: dlock's job starts after $ms ms (target: $3)"
  ((ms >= 0 && ms < 1000)) || fail "$1: dlock's job started after $ms ms"
}

# dlock waits until node releases.
for _ in 1 2 3; do
  tell_node acquire k 60000
  expect_node held
  start_job
  wait_until 10 has_key '{k}:queue'
  [[ ! -e started ]] || fail "both hold the lock"
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
wait_until 10 has_key '{k}:queue'
asked=$(now)
expires=$((asked + $(rcli r pttl k) * 1000))
wait_until 10 test -e started
report "expired" "$expires" 100
value=$(rcli r get k)
tell_node release
expect_node refused
assert_equal "$value" "$(rcli r get k)" "dlock's lock after node's late release"

# What dlock has been told about node's lock is over; its own renewals do not call for another.
renewals() { rcli r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }
rcli r config resetstat >rcli.out
sleep 2  # a second after the start it begins to renew: once, and then in 10 s
(($(renewals) <= 3)) || fail "$(renewals) renewals in 2 s"

# Node tries in vain until dlock releases.
tell_node acquire k 60000
expect_node busy
assert_equal "$value" "$(rcli r get k)" "dlock's lock that node wants"
echo end >job
expect_status 0 wait "$dlock"
expect_node held
assert_equal "$said" "$(rcli r get k)" "node's lock"
tell_node release
expect_node released

# A lock that dlock has lost to node is node's: dlock's late release leaves it alone.
start_job
wait_until 10 test -e started
rcli r del k >rcli.out
tell_node acquire k 60000
expect_node held
echo end >job
expect_status 79 wait "$dlock"
assert_equal "$said" "$(rcli r get k)" "node's lock after dlock's late release"
(($(rcli r pttl k) > 50000)) || fail "dlock changed the ttl of node's lock"
