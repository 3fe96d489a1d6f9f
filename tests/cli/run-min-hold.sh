#!/usr/bin/env bash
# ctest: cost 18
# With --min-hold the caller has the exit status and its pipes back at once, and the lock stays held
# until the time is over, and is free then.
. "$(dirname "$0")/lib.sh"

cd "$tmp"

# The caller is a pipe's reader, too: it is back before the lock is free.
started=$(now_ms)
got=0
out=$("$DLOCK" run -k job --min-hold 3 --status-file status -- sh -c 'echo hi; exit 7' 2>&1) || got=$?
assert_held job
assert_equal 7 "$got" "exit status with --min-hold"
assert_equal hi "$out" "what the command wrote"
assert_contains "$(<status)" '"outcome":"completed"' "status file"
expect_status 0 "$DLOCK" run -q -k job -w 60 -- true
took=$(($(now_ms) - started))
((took >= 3000)) || fail "the lock was free after $took ms, with --min-hold 3"

# Others see that the command has ended, and no process to be killed.
"$DLOCK" run -k job --min-hold 4 -- true
is_shown_as_ended() { [[ $("$DLOCK" show job --output command,pid,ended) == *true*yes* ]]; }
wait_until 2 is_shown_as_ended
"$DLOCK" show --json job >shown
pid=$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' shown)
assert_contains "$(<shown)" '"ended": true' "show --json"
[[ -z $pid ]] || ! gone "$pid" || fail "show names process $pid, which has ended"
"$DLOCK" run -k job -- true 2>waiting
assert_contains "$(<waiting)" '(true, which has ended)' "the message of a waiter"

# Other descriptors come back as well, and who reads them sees their end; the caller's group does
# not matter.
mkfifo pipe
setsid "$DLOCK" run -k job --min-hold 3 -- true 3>pipe &
expect_status 0 timeout 60 cat pipe >/dev/null
assert_held job
wait $!

# So does the descriptor of --status-file.
"$DLOCK" run -k job --min-hold 3 --status-file /dev/stdout -- true | cat >piped
assert_held job
assert_contains "$(<piped)" '"outcome":"completed"' "status in a pipe"
expect_status 0 "$DLOCK" run -q -k job -w 60 -- true

# A command that runs for longer frees the lock when it ends.
expect_status 0 "$DLOCK" run -q -k job -w 60 --min-hold 0.1 -- sleep 0.3
expect_status 0 "$DLOCK" run -q -n -k job -- true

# Nothing ran, nothing to keep the lock for.
try 127 -q -k job --min-hold 300 -- "$tmp/missing"
expect_status 0 "$DLOCK" run -q -n -k job -- true

# The other modes.
expect_status 0 "$DLOCK" run -k job --shared --min-hold 3 -- true
assert_held job
expect_status 0 "$DLOCK" run -q -n -k job --shared -- true
expect_status 0 "$DLOCK" run -q -k job -w 60 -- true

# Where SIGTERM was ignored when dlock started, it does not end the supervisor that keeps the lock, whether it arrives
# before the command has ended or later.
started=$(now_ms)
(
  trap '' TERM
  # shellcheck disable=SC2016  # of the command
  "$DLOCK" run -k job --min-hold 3 -- sh -c 'echo $PPID >supervisor; kill -TERM $PPID'
)
kill -TERM "$(<supervisor)" || fail "the supervisor does not stay to keep the lock"
expect_status 0 "$DLOCK" run -q -k job -w 60 -- true
took=$(($(now_ms) - started))
((took >= 3000)) || fail "the lock was free after $took ms, with --min-hold 3 and SIGTERM ignored"

# Nobody is left behind when the time is over.
mark=dlock-min-hold-$$
env MARK="$mark" "$DLOCK" run -k job --min-hold 2 -- true
none_left() { [[ -z $(grep -lzsxF "MARK=$mark" /proc/[0-9]*/environ || true) ]]; }
if none_left; then fail "nobody keeps the lock after the command"; fi
assert_held job
wait_until 60 none_left
expect_status 0 "$DLOCK" run -q -n -k job -- true
