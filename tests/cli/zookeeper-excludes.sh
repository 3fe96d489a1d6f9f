#!/usr/bin/env bash
# What run-excludes.sh counts is exact when a ZooKeeper server keeps the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"

start_zk a
# Each killed supervisor costs a ttl: a short one.
bash "$DLOCK_SOURCE/tests/cli/run-excludes.sh" --backend "${zk_url[a]}" --ttl 1s
queue_is_empty() { [[ -z $(zk a ls /dlock/counter) ]]; }
wait_until 10 queue_is_empty
