#!/usr/bin/env bash
# An emptyDir of a pod, writable by everybody and not sticky, is refused by name and taken with ?trust=all; then its
# users exclude each other, also in a user namespace, which does not know who owns it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
install -d -m 777 "$tmp/cache"

export DLOCK_BACKEND=file://$tmp/cache
for command in 'run -k job -- true' 'list' 'show job'; do
  # shellcheck disable=SC2086  # words
  expect_status 77 "$alice" $command 2>err
  assert_contains "$(<err)" "is writable by everybody and not sticky: chmod o-w or chmod +t it, or see trust=all" "$command"
done
for url in 'file:///?trust=all' 'file://?trust=all' "$DLOCK_BACKEND?trust=ALL" "$DLOCK_BACKEND?trust=all&trust=all" "$DLOCK_BACKEND?trust"; do
  expect_status 64 "$alice" run -b "$url" -k job -- true 2>err
done

export DLOCK_BACKEND+='?trust=all'
for mode in '' --shared --slots=1; do
  DLOCK=$alice holder a -k job ${mode:+"$mode"}
  beside=75
  [[ $mode != --shared ]] || beside=0
  expect_status $beside "$bob" run -q -n -k job ${mode:+"$mode"} -- true
  assert_contains "$("$bob" list -q -o key)" job "what others see"
  "$bob" run -q -w 60 -k job ${mode:+"$mode"} -- touch "$tmp/work/next$mode" &
  waiter=$!
  finish a
  expect_status 0 wait "$waiter"
done
DLOCK=$alice holder a -k job
expect_status 0 "$bob" force-release -y job 2>err
ends 79 a
expect_status 0 "$alice" once -q -k job --every 1d -- true
expect_status 0 "$bob" once -q -k job --every 1d -- false
expect_status 0 "$alice" id --name n >one
expect_status 0 "$bob" id --name n >two
assert_equal "1 2" "$(<one) $(<two)" "numbers"

# A directory of one's own in there.
install -d -m 700 -o "${uid[alice]}" "$tmp/cache/own"
expect_status 77 "$alice" run -q -b "file://$tmp/cache/own" -k job -- true 2>err
expect_status 0 "$alice" run -q -b "file://$tmp/cache/own?trust=all" -k job -- true
expect_status 77 "$root" run -q -b "file://$tmp/cache/own" -k job -- true 2>err
# What root leaves there its owner could not use.
expect_status 77 "$root" run -q -b "file://$tmp/cache/own?trust=all" -k other -- true 2>err
assert_contains "$(<err)" "belongs to user" "stderr of root"

# In a pod with a user namespace.
in_namespace=(setpriv --reuid "${uid[eve]}" --regid "${uid[eve]}" --clear-groups unshare --user)
"${in_namespace[@]}" true 2>/dev/null || exit 0
DLOCK=$alice holder b -k job
expect_status 75 "${in_namespace[@]}" --map-root-user "$tmp/dlock" run -q -n -k job -- true
expect_status 75 "${in_namespace[@]}" "$tmp/dlock" run -q -n -k job -- true
finish b
expect_status 0 "${in_namespace[@]}" --map-root-user "$tmp/dlock" run -q -n -k job -- true
expect_status 0 "$alice" run -q -n -k job -- true
