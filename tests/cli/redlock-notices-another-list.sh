#!/usr/bin/env bash
# Clients with different lists of servers do not exclude each other: who meets the lock of the other is told.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
for name in a b c d e; do start_redis "$name"; done
# list NAME...: the URL of these servers.
list() {
  local name out=
  for name in "$@"; do out+=${out:+,}127.0.0.1:${redis_port[$name]}; done
  echo "redlock://$out"
}
hold -b "$(list a b c)"

# In another order it is the same list.
try 75 -n -b "$(list c a b)" -k job -- true
assert_lacks "$(<err)" list

# Most of these refuse: it is busy, and that is said.
try 75 -n -b "$(list b c d)" -k job -- true
assert_contains "$(<err)" '"job" is held by a client with another list of servers'
assert_contains "$(<err)" '"job" is held by '

# Most of these are free.  One that refuses may be slower than they are.
is_refused() {
  local status=0
  "$DLOCK" run -n -b "$(list c d e)" -k job -- true 2>err || status=$?
  [[ $status != 0 ]] || return 1
  assert_equal 64 "$status" "status of $(<err)"
}
wait_until 20 is_refused
assert_contains "$(<err)" "redis 127.0.0.1:${redis_port[c]}: \"job\" is held by a client with another list of servers"
assert_contains "$(<err)" 'give all the same list'
release
