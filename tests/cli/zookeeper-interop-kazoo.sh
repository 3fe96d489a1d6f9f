#!/usr/bin/env bash
# kazoo's locks exclude dlock's on the same path, and are excluded where their names allow it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper-peers.sh"

# The distribution's python has python3-kazoo, another one before it in PATH need not.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import kazoo' 2>/dev/null; then python=$candidate; fi
done
[[ $python ]] || skip "python3-kazoo is not installed"
kazoo=("$python" "$TEST_SOURCE/tests/peers/kazoo_lock.py" "${peer_at[@]}")

start_peer "${kazoo[@]}" lock
excluded "Lock, which was first"
shown_as kazoo
excluded "Lock, a writer of its own style" -b "$DLOCK_BACKEND?style=kazoo"
excludes "Lock" -b "$DLOCK_BACKEND?style=kazoo"
excludes "Lock, a slot" --slots 1 -b "$DLOCK_BACKEND?style=kazoo"
excluded "Lock, a reader" --shared -b "$DLOCK_BACKEND?style=kazoo"
stop_peer

# As kazoo says it is to be told of others.
start_peer "${kazoo[@]}" lock -lock-
excluded "Lock that knows of Curator"
excludes "Lock that knows of Curator"
excludes "Lock that knows of Curator, a slot" --slots 1
stop_peer

start_peer "${kazoo[@]}" write
excluded "WriteLock" -b "$DLOCK_BACKEND?style=kazoo"
excludes "WriteLock" -b "$DLOCK_BACKEND?style=kazoo"
excluded "WriteLock, a reader" --shared -b "$DLOCK_BACKEND?style=kazoo"
excludes "WriteLock, a reader" --shared -b "$DLOCK_BACKEND?style=kazoo"
stop_peer

start_peer "${kazoo[@]}" read
excluded "ReadLock" -b "$DLOCK_BACKEND?style=kazoo"
excludes "ReadLock" -b "$DLOCK_BACKEND?style=kazoo"
together "ReadLock, a reader" --shared -b "$DLOCK_BACKEND?style=kazoo"
stop_peer
