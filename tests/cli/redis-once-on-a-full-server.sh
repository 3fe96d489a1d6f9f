#!/usr/bin/env bash
# A server that can be read and not written to, as a replica or one that is out of memory, has not been reached: dlock
# once gives up as dlock run does, and does not wait for ever for what is wrong with the configuration.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"
start_redis server
export DLOCK_BACKEND=${redis_url[server]} DLOCK_CONNECT_TIMEOUT=1s
expect_status 0 "$DLOCK" once -q -k old --remember 1h -- true

rcli server config set maxmemory 1 >/dev/null
expect_status 69 timeout 60 "$DLOCK" once -k job --remember 1h -- touch ran 2>err
assert_contains "$(<err)" "is out of memory" "a server without memory"
# What is remembered can be seen all the same.
expect_status 0 timeout 60 "$DLOCK" once -q -k old --remember 1h -- touch ran
rcli server config set maxmemory 0 >/dev/null

start_redis other
rcli server replicaof 127.0.0.1 "${redis_port[other]}" >/dev/null
expect_status 69 timeout 60 "$DLOCK" once -k job --remember 1h -- touch ran 2>err
[[ ! -e ran ]] || fail "it was run"
