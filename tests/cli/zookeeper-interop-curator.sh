#!/usr/bin/env bash
# ctest: cost 15
# Apache Curator's InterProcessMutex and InterProcessReadWriteLock exclude dlock on the same path, and
# are excluded by it.
. "$(dirname "$0")/lib.sh"
need javac
jars=/usr/share/java
[[ -r $jars/curator-recipes.jar ]] || skip "Debian's libcurator-recipes-java is not installed"
. "$(dirname "$0")/zookeeper-peers.sh"

path=$tmp/classes
for jar in curator-recipes curator-framework curator-client zookeeper zookeeper-jute guava slf4j-api slf4j-simple; do
  path+=:$jars/$jar.jar
done
javac -cp "$path" -d "$tmp/classes" "$TEST_SOURCE/tests/peers/CuratorLock.java"
curator=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto -Xmx128m
  -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$path" CuratorLock "${peer_at[@]}")

start_peer "${curator[@]}" mutex
excluded "InterProcessMutex"
excludes "InterProcessMutex"
shown_as curator
excluded "InterProcessMutex, a reader" --shared
excludes "InterProcessMutex, a slot" --slots 1
stop_peer

start_peer "${curator[@]}" write
excluded "the write lock" -b "$DLOCK_BACKEND?style=curator-rw"
excludes "the write lock" -b "$DLOCK_BACKEND?style=curator-rw"
excluded "the write lock, a reader" --shared
excludes "the write lock, a reader" --shared
excluded "the write lock, with names of a mutex"
stop_peer

start_peer "${curator[@]}" read
excluded "the read lock" -b "$DLOCK_BACKEND?style=curator-rw"
excludes "the read lock" -b "$DLOCK_BACKEND?style=curator-rw"
together "the read lock, a reader" --shared
stop_peer
