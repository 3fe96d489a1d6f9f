#!/usr/bin/env bash
# ctest: every kind of backend
# The lock of acquire --while PID is released by its lock id.  The process that keeps it is told through the service,
# and the script goes on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
export DLOCK_BACKEND

cat >script <<'SH'
#!/bin/bash
trap 'touch term; exit 9' TERM
lock=$("$DLOCK" acquire -k job -k other --while $$ --export) || exit
eval "$lock"
echo "$DLOCK_TOKENS" >tokens
exec 9<> <(:)
touch ready
until [[ -e end ]]; do read -rt 0.02 -u 9 || :; done
SH
chmod +x script
begin() {
  start_script ./script
  { read -r job; read -r other; } <tokens
}
keepers() { pgrep -f "^lock keeper.* for pid ${pid[script]}\$"; }
no_keepers() { ! keepers >/dev/null; }
run_on() {
  assert_held other
  kill -0 "${pid[script]}"
  [[ ! -e term ]] || fail "the script was ended"
}

# One of two; the other one is held still.
begin
"$DLOCK" release -q -k job --token-file "$(token_file "$job")"
assert_free job
run_on
expect_status 1 "$DLOCK" release -q -k job --token-file "$(token_file "$job")"
expect_status 1 "$DLOCK" release -q -k job --token-file "$(token_file "$other")"
run_on
# The last one: nobody is left to keep anything.
"$DLOCK" release -q -k other --token-file "$(token_file "$other")"
assert_free other
wait_until 10 no_keepers
touch end
ends 0 script
[[ ! -e term ]] || fail "the script was ended"
assert_equal '' "$(<script.err)" "on stderr"
