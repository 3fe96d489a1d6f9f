#!/usr/bin/env bash
# A ZooKeeper server whose answers are damaged or do not end costs little memory, and no more time than it was given;
# what it says is never taken for a lock that is free.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/endless.sh"

cd "$tmp"
for answer in many fewer-than-none negative-name long-name one-too-few nothing; do
  start_endless "zookeeper-$answer"
  ends_endless 69 15 'the answer is damaged' list -b "zookeeper://127.0.0.1:$port" --connect-timeout 5
  ends_endless 69 15 'the answer is damaged' run -n -k job -b "zookeeper://127.0.0.1:$port" --connect-timeout 5 -- touch ran
done
start_endless zookeeper-endless
ends_endless 69 15 'more than 64 MiB' list -b "zookeeper://127.0.0.1:$port" --connect-timeout 5
ends_endless 69 15 'more than 64 MiB' run -n -k job -b "zookeeper://127.0.0.1:$port" --connect-timeout 5 -- touch ran
[[ ! -e ran ]] || fail "the command was run"
