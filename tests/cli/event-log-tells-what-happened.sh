#!/usr/bin/env bash
# --event-log: what each command writes, in which order, with what is known of it; exit status and outcome are those of
# the status file; and what must not be there is not: arguments, the lock id.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

# run STATUS ARGUMENTS...: dlock run with a log of its own and a status file; the last event agrees with that.
run() {
  logs try "$1" -q --status-file status "${@:2}"
  assert_equal "$(jq -c '[.outcome, .exit_status, .reason]' status)" "$(tail -n 1 log | jq -c '[.outcome, .exit_status, .reason]')" \
    "outcome, exit_status, reason of the last event of: $*"
}

# An uncontended run: two writes, with all that is always there.
run 3 -k job --label 'a "b"' -- sh -c 'echo "$DLOCK_TOKEN $DLOCK_FENCE" >token; exit 3' sh secret
assert_equal $'acquired\nreleased' "$(events .event)"
assert_equal "$(cut -d' ' -f2 token)" "$(events .fence | head -n 1)" "fencing number"
assert_equal $'job sh a "b"\njob sh a "b"' "$(events '.key, .command, .label')"
assert_equal 1 "$(events '.run, .host, .pid, .user, .backend' | sort -u | wc -l)" "lines differ in whose they are"
assert_equal "$DLOCK_BACKEND $(id -un)" "$(events '.backend, .user' | head -n 1)"
assert_equal false "$(events .borrowed | tail -n 1)"
id=$(cut -c 1-12 token)
assert_lacks "$(<log)" "$id" "the lock id"
assert_lacks "$(<log)" secret "an argument of the command"
if command -v strace >/dev/null; then
  rm log
  strace -f -qq -e trace=write -o trace "$DLOCK" run -k job -- true
  assert_equal 2 "$(grep -c '"{' trace)" "writes of an uncontended run"
fi

# Ways to end.
# shellcheck disable=SC2016  # $$ is the command's
run 137 -k job -- sh -c 'kill -KILL $$'
run 127 -k job -- ./missing
assert_equal $'acquired\nreleased' "$(events .event)"
run 124 -k job --max-hold 0.1 -- sleep 300
assert_equal $'acquired null\nending 15 max-hold\nreleased null' "$(events '.event, .signal, .why // empty')"
run 124 -k job --max-hold 0.1 --kill-after 0 -- sleep 300
assert_equal $'acquired null\nending 9 max-hold\nreleased null' "$(events '.event, .signal, .why // empty')"
# shellcheck disable=SC2016  # for the inner shell
run 79 -k lost --kill-after 1 -- sh -c 'rm "$1"; sleep 300' sh "$locks/lost"
assert_equal $'acquired null\nending 15 lost\nlost null' "$(events '.event, .signal, .why // empty')"
(($(events .held_ms | tail -n 1) < 60000)) || fail "held_ms"
run 79 -k lost --on-lost ignore -- sh -c 'rm "$1"; sleep 2' sh "$locks/lost"
assert_equal $'acquired\nlost' "$(events .event)"
# shellcheck disable=SC2016  # for the inner shell
run 143 -k job -- sh -c 'kill "$PPID"; sleep 300'
assert_equal $'acquired null\nending 15 signal 15\nreleased null' "$(events '.event, .signal, .why // empty')"
run 0 -k job --min-hold 0.5 -- true
DLOCK_EVENT_LOG='' wait_until 30 is_free job
run 69 -k job -b "file://$tmp/missing" -- true
assert_equal unreachable "$(events .event)"
mkdir -m 0777 open
run 77 -k job -b "file://$tmp/open" -- true
assert_equal 'error denied' "$(events '.event, .outcome')"

# Waiting.
DLOCK_EVENT_LOG='' hold --label held
run 75 -k job -n -- true
assert_equal "gave-up $holder 0" "$(events '.event, .holder.pid, .waited_ms' | sed -E 's/ [0-9]{1,3}$/ 0/')"
run 9 -k job -w 0.2 -E 9 -- true
assert_equal "waiting $holder held"$'\n'"gave-up $holder held" "$(events '.event, .holder.pid, .holder.label')"
# --wait begins with the run, waited_ms when the lock is asked for.
(($(events .waited_ms | tail -n 1) >= 100)) || fail "waited_ms is much shorter than --wait"
rm log
"$DLOCK" run -q -k job -- true &
wait_until 30 has_waiter "$locks/job"
env --default-signal "$DLOCK" run -q -k job -- true &
waiter=$!
two_wait() { [[ $(grep -cs waiting log || true) == 2 ]]; }
wait_until 30 two_wait
kill "$waiter"
expect_status 143 wait "$waiter"
assert_equal 'gave-up signalled 143' "$(events '.event, .outcome, .exit_status' | tail -n 1)"
release
wait
check_log log
assert_equal $'waiting\nwaiting\ngave-up\nacquired\nreleased' "$(events .event)"

# Several locks: a line for each, and the time of waiting counts for the one that was waited for.
DLOCK_EVENT_LOG='' hold
run 75 -k a -k job -k z -w 0.2 -- true
assert_equal $'job waiting\na gave-up null\njob gave-up '"$holder"$'\nz gave-up null' \
  "$(events '.key, .event, if .event == "gave-up" then .holder.pid else empty end')"
assert_equal 'true true' "$(jq -r 'select(.event == "gave-up" and .key != "job") | .waited_ms < 200' log | xargs)"
rm log
"$DLOCK" run -q -k z -k job -k a -- true &
wait_until 30 grep -qs waiting log
release
wait
check_log log
assert_equal $'job waiting\na acquired\njob acquired\nz acquired\nz released\njob released\na released' "$(events '.key, .event')"
# shellcheck disable=SC2016  # for the inner shell
run 79 -k a -k b --kill-after 1 -- sh -c 'rm "$1"; sleep 300' sh "$locks/b"
assert_equal $'a released\nb lost' "$(events '.key, .event' | tail -n 2)"

# Nested: the lock is borrowed.
logs "$DLOCK" run -q -k job -- sh -c '"$DLOCK" run -q -k job -- true'
assert_equal $'acquired null\nborrowed null\nreleased true\nreleased false' "$(events '.event, .borrowed')"
assert_equal 2 "$(events .run | sort -u | wc -l)" "runs"

# once.
logs "$DLOCK" once -q -k job --remember 1h -- true
assert_equal $'acquired\ndone\nreleased' "$(events .event)"
logs "$DLOCK" once -q -k job --remember 1h -- true
assert_equal "skipped done 0 true once" "$(events '.event, .outcome, .exit_status, .done_by.command, .done_by.kind')"
logs expect_status 3 "$DLOCK" once -q -k fails --remember 1h -- sh -c 'exit 3'
assert_equal $'acquired\nreleased' "$(events .event)"
