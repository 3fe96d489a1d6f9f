#!/usr/bin/env bash
# ctest: every backend
# A nested run on a key that the job above it holds runs at once and releases nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
export DLOCK_BACKEND

run() { "$DLOCK" run -q --key "$1" "${@:2}"; }

assert_equal "in" "$(run a -- "$DLOCK" run --key a -- echo in)" "a nested run"
assert_equal "in" "$(run a -- "$DLOCK" run --key a -n -- "$DLOCK" run --key a -n -- echo in)" "twice nested"
assert_equal "in" "$(run a -- "$DLOCK" run --key b -- "$DLOCK" run --key a -- echo in)" "nested with another key between"
assert_equal "in" "$(run a --shared -- "$DLOCK" run --key a --shared -- echo in)" "nested and shared"
assert_equal "in" "$(run a --slots 1 -- "$DLOCK" run --key a --slots 1 -- echo in)" "nested in the last slot"
expect_status 6 run a -- "$DLOCK" run --key a -- sh -c 'exit 6'

# Still held after the nested one has ended; and its token and fence are those of the lock.
run a -- sh -c '
  outer="$DLOCK_TOKEN $DLOCK_FENCE"
  inner=$("$DLOCK" run --key a -- sh -c "echo \$DLOCK_TOKEN \$DLOCK_FENCE")
  [ "$outer" = "$inner" ] || { echo "nested: $inner, outer: $outer"; exit 1; }
  env -u DLOCK_SUPERVISORS "$DLOCK" run -q --key a -n -- true && exit 2
  env -u DLOCK_TOKEN -u DLOCK_KEY -u DLOCK_FENCE "$DLOCK" run -q --key a -n -- true || exit 3
  exit 0' || fail "a nested run released the lock, or has another token"

# A process that copied the environment, as at(1) and tmux(1) do, and is not below the holder, has nothing: neither while
# the lock is held nor later.
"$DLOCK" run --key a -- sh -c 'env >env.new; mv env.new env; exec sleep 1000' &
holder=$!
wait_until 20 test -e env
grep -q ^DLOCK_SUPERVISORS= env || fail "the command does not know of the supervisor"
mapfile -t variables < <(grep ^DLOCK_ env)
expect_status 75 env "${variables[@]}" "$DLOCK" run -q --key a -n -- true
kill "$holder"
wait "$holder" || true
expect_status 0 env "${variables[@]}" "$DLOCK" run -q --key a -n -- true
"$DLOCK" run --key a -- sleep 1000 &
wait_until 20 is_held a
expect_status 75 env "${variables[@]}" "$DLOCK" run -q --key a -n -- true

# What could only wait for itself is refused, with both modes named.
refused() { # OUTER INNER WORDS...: options, separated by spaces, and what the message names
  local outer inner message word status=0
  read -ra outer <<<"$1"
  read -ra inner <<<"$2"
  message=$(run m "${outer[@]}" -- "$DLOCK" run --key m "${inner[@]}" -- true 2>&1) || status=$?
  assert_equal 64 "$status" "the status of '$2' inside '$1'"
  for word in "would wait for ever" "${@:3}"; do assert_contains "$message" "$word" "'$2' inside '$1'"; done
}
refused "" "--shared" exclusively --shared
refused "--shared" "" --shared exclusively
refused "--slots 2" "--slots 3" "--slots 2" "--slots 3"
refused "--slots 2" "" "--slots 2" exclusively
refused "" "--slots 2" exclusively "--slots 2"
