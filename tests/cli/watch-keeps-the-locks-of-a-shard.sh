#!/usr/bin/env bash
# If a shard does not answer, "dlock watch" goes on with the others.  It says that a lock has gone only when all answer.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
unset DLOCK_BACKEND
start_redis a
start_redis b appendonly yes
shards config.json "${redis_url[a]}" "${redis_url[b]}"
export DLOCK_CONFIG=$tmp/config.json DLOCK_CONNECT_TIMEOUT=1

# A held key in each shard, and one more in a: ${of[NAME]}.
declare -A of=()
for ((i = 0; ${#of[@]} < 3; ++i)); do
  ((i < 1000)) || fail "1000 keys leave a shard without any: ${!of[*]}"
  location=$("$DLOCK" show -b db "key-$i" || (($? == 1)))
  if [[ $location == *"${redis_port[b]}"* ]]; then name=b; else name=a${of[a]+2}; fi
  [[ -z ${of[$name]-} ]] || continue
  of[$name]=key-$i
  "$DLOCK" run -q -b db -k "key-$i" --ttl 1m -- sh -c "touch $name.held; until test -e $name.go; do sleep 0.02; done" &
  wait_until 30 test -e "$name.held"
done

"$DLOCK" watch -b db --interval 1 >lines 2>err &
watch=$!
has() { grep -qsE -- "$2" "$1"; }
for name in a a2 b; do wait_until 30 has lines "  present  ${of[$name]} "; done
stop_redis b
wait_until 30 has err "the locks of shard .*${redis_port[b]}.* are missing"
touch a.go
"$DLOCK" run -q -b db -k "${of[a2]}" -w 1m -- sh -c 'touch next; until test -e next.go; do sleep 0.02; done' &
touch a2.go
wait_until 30 has lines "  acquired  ${of[a2]} "
assert_lacks "$(<lines)" "  gone  ${of[b]} " "a lock of the shard that is down"
assert_equal 1 "$(grep -c . err)" "messages of an outage ($(<err))"
restart_redis b
wait_until 30 has lines "  gone  ${of[a]} "
assert_lacks "$(<lines)" "  gone  ${of[b]} " "a lock of the shard that was down"
touch b.go next.go
for name in a2 b; do wait_until 30 has lines "  gone  ${of[$name]} "; done
kill -TERM "$watch"
expect_status 0 wait "$watch"
