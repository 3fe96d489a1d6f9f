#!/usr/bin/env bash
# ctest: longer in soak
# A Redis server whose SCAN never ends, or whose answers are huge, costs little memory, and dlock list ends.  One that
# sends messages without end does not keep a waiter for longer than it wants to wait, and one that begins TLS without
# end does not keep it for longer than it may take to connect.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/endless.sh"

cd "$tmp"
start_endless redis-scan
ends_endless 69 60 'SCAN has not ended' list -b "redis://127.0.0.1:$port"
if [[ -n ${TEST_SOAK-} ]]; then
  start_endless redis-empty-scan
  ends_endless 69 900 'SCAN has not ended' list -b "redis://127.0.0.1:$port"
fi
start_endless redis-cursors
ends_endless 69 60 'SCAN has not ended' list -b "redis://127.0.0.1:$port"
start_endless redis-records
ends_endless 69 60 'answers with more than 64 MiB' list -b "redis://127.0.0.1:$port"
start_endless tls
ends_endless 69 20 'TLS has not begun in time' list --connect-timeout 1 -b "rediss://127.0.0.1:$port"
"$DLOCK" run --connect-timeout 60 -k job -b "rediss://127.0.0.1:$port" -- touch ran 2>err &
begun_again() { (($(grep -c begun "port-tls") == 2)); }
wait_until 20 begun_again
kill $!
got=0
wait $! || got=$?
assert_equal 143 "$got" "status after SIGTERM while TLS begins"
start_endless redis-messages
ends_endless 75 20 'is held by' run -w 2 -k job -b "redis://127.0.0.1:$port" -- touch ran
[[ ! -e ran ]] || fail "the command was run"
