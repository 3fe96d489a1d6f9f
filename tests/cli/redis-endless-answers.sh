#!/usr/bin/env bash
# ctest: longer in soak
# A Redis server whose SCAN never ends costs little memory, and dlock list ends.  One that sends messages without end
# does not keep a waiter for longer than it wants to wait.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/endless.sh"

cd "$tmp"
start_endless redis-scan
ends_endless 69 60 'SCAN has not ended' list -b "redis://127.0.0.1:$port"
if [[ -n ${DLOCK_TEST_SOAK-} ]]; then
  start_endless redis-empty-scan
  ends_endless 69 900 'SCAN has not ended' list -b "redis://127.0.0.1:$port"
fi
start_endless redis-messages
ends_endless 75 20 'is busy' run -w 2 -k job -b "redis://127.0.0.1:$port" -- touch ran
[[ ! -e ran ]] || fail "the command was run"
