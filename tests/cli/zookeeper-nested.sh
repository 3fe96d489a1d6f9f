#!/usr/bin/env bash
# What run-nested.sh says of the file backend holds with a ZooKeeper server.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"

start_zk a
bash "$DLOCK_SOURCE/tests/cli/run-nested.sh" "${zk_url[a]}"
