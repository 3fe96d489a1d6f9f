#!/usr/bin/env bash
# The recipes for event logs: the longest holds, how long runs have waited, and counters for Prometheus.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
. "$(dirname "$0")/recipe.sh"

write_recipes longest-holds contention prometheus
sed -i "s,/var/log/dlock/events.jsonl,$tmp/log,; s,/var/lib/prometheus/node-exporter,$tmp," longest-holds contention prometheus

"$DLOCK" run -q -k a -- sleep 0.2
"$DLOCK" run -q -k a -- true
"$DLOCK" run -q -k 'b "c"' -- sh -c '"$DLOCK" run -q -k "b \"c\"" -- true'
# shellcheck disable=SC2119  # no arguments
hold
"$DLOCK" run -q -k job -w 0.4 -- true || true
release
"$DLOCK" run -q -k lost --kill-after 1 -- sh -c 'rm "$1"; sleep 300' sh "$locks/lost" || true
check_log log

sh ./longest-holds >out
assert_equal 'a b "c" job' "$(jq -r 'map(.key) | join(" ")' out)"
jq -e '.[0].held_ms >= 200 and .[0].event == "released"' out >/dev/null || fail "the longest hold of a: $(<out)"

sh ./contention >out
assert_equal job "$(jq -r '.[0].key' out)" "the lock that was waited for longest"
jq -e '.[0].waited_ms >= 300' out >/dev/null || fail "waited_ms: $(<out)"

sh ./prometheus
[[ ! -e dlock.prom.new ]] || fail "the new file was not renamed"
has() { grep -qxE -- "$1" dlock.prom || fail "no line $1 in: $(<dlock.prom)"; }
has 'dlock_acquired_total\{key="a"\} 2'
has 'dlock_acquired_total\{key="b \\"c\\""\} 1'
has 'dlock_lost_total\{key="lost"\} 1'
has 'dlock_lost_total\{key="a"\} 0'
has 'dlock_gave_up_total\{key="job"\} 1'
has 'dlock_held_seconds_total\{key="a"\} 0\.[2-9][0-9]*'
has 'dlock_waited_seconds_total\{key="job"\} 0\.[3-9][0-9]*'
assert_equal 20 "$(wc -l <dlock.prom)" "lines"
assert_equal '' "$(grep -vE '^dlock_[a-z_]+_total\{key="([^"\\]|\\["\\])*"\} [0-9.]+(e-?[0-9]+)?$' dlock.prom || true)" "lines that Prometheus cannot read"
cut -d'{' -f1 dlock.prom | uniq | sort | uniq -d >twice
assert_equal '' "$(<twice)" "metrics whose lines are not together"
