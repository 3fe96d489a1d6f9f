#!/usr/bin/env bash
# ctest: every kind of backend
# The event log of runs that wait names the holder and, where the backend has an order, the place in the queue; with
# each backend it is as the manual says, and has no password.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
. "$TEST_SOURCE/tests/cli/event-log.sh"
export DLOCK_BACKEND

# waits NAME: a run that waits, and has said so.
waits() {
  "$DLOCK" run -q -k job --label "$1" -- true &
  pid[$1]=$!
  wait_until 30 grep -qs "\"event\":\"waiting\".*\"label\":\"$1\"" log
}
DLOCK_EVENT_LOG='' hold --label holder
has_place() { grep -q "\"place\":$2,.*\"label\":\"$1\"" log; }
waits first
[[ ${trait[order]} != fifo || $backend == redlock ]] || wait_until 30 has_place first 1
waits second
[[ ${trait[order]} != fifo || $backend == redlock ]] || wait_until 30 has_place second 2
expect_status 75 "$DLOCK" run -q -k job -w 0.2 --label third -- true
assert_equal "gave-up $holder holder" "$(events '.event, .holder.pid, .holder.label' | tail -n 1)"

# Of two locks, each has the time that was spent on it.
DLOCK_EVENT_LOG='' holder a -q -k a
DLOCK_EVENT_LOG='' holder b -q -k b
"$DLOCK" run -q -k a -k b -w 6 --label both -- true &
pid[both]=$!
wait_until 30 grep -q '"event":"waiting","key":"a"' log
sleep 2
finish a
wait_until 30 grep -q '"event":"waiting","key":"b"' log
ends 75 both
finish b
waited() { jq ".|select(.event==\"gave-up\" and .label==\"both\" and .key==\"$1\").waited_ms" log; }
(($(waited a) >= 1900 && $(waited b) <= 5200)) || fail "waited $(waited a) ms for a, $(waited b) ms for b"
release
wait "${pid[first]}" "${pid[second]}"
check_log log
assert_equal 2 "$(grep -c '"event":"acquired"' log)" "runs that have acquired"
(($(grep -c '"event":"waiting"' log) <= 10)) || fail "more lines than two for each that waits"
[[ $(jq -r .backend log | sort -u) == *127.0.0.1* || $backend == file ]] || fail "no server in: $(head -n 1 log)"
