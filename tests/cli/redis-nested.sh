#!/usr/bin/env bash
# What run-nested.sh says of the file backend holds with a redis server.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

start_redis a
bash "$DLOCK_SOURCE/tests/cli/run-nested.sh" "${redis_url[a]}"
