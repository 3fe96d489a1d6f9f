#!/usr/bin/env bash
# Two clients that write the same databases in other ways place each key alike, and so exclude each other.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
export DLOCK_BACKEND=db
start_redis a
at=127.0.0.1:${redis_port[a]}

# exclude_each_other SHARDS...: while one client has a key with the first list, none gets it with another.
exclude_each_other() {
  local first=$1 i other
  shift
  rm -f held go
  for ((i = 0; i < 16; ++i)); do keys[i]=job-$i; done
  shards first "$first"
  DLOCK_CONFIG=first "$DLOCK" run -q "${keys[@]/#/--key=}" -- sh -c \
    'touch held; until test -e go; do sleep 0.02; done' &
  wait_until 30 test -e held
  for other in "$@"; do
    shards other "$other"
    for ((i = 0; i < 16; ++i)); do
      DLOCK_CONFIG=other expect_status 75 "$DLOCK" run -q -n -k "job-$i" -- true
    done
  done
  touch go
  wait "$!"
}
keys=()
port=${redis_port[a]}
exclude_each_other "redis://$at/0,redis://$at/1" "redis://$at/00,redis://$at/01" \
  "redis://127.1:$port,redis://0x7f.0.0.1:$port/1" "redis://$at/1,redis://$at/"
at=redis+unix://${redis_dir[a]}/socket
exclude_each_other "$at,$at?db=1" "$at?db=0,$at?db=01" "${at/unix:/unix:\/\/}?db=1,$at"
