#!/usr/bin/env bash
# ctest: every kind of backend
# -vv prints a line for each exchange with the backend, with its outcome and time, and -v does not.  No line has
# the whole id of a grant: with that, others could release it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

exchanges() { grep -cE '^dlock: .+ -> .+, [0-9]+\.[0-9] ms$' "$1" || true; }

holder first -k job -vv
waiter second job -vv
touch first.go
runs second
finish first second
for name in first second; do
  (($(exchanges $name.err) > 0)) || fail "-vv shows no exchange of $name: $(<$name.err)"
done
cat first.err second.err >both
for name in first second; do
  assert_lacks "$(<both)" "$(<$name.token)" "what -vv prints"
  digits=$(<$name.token)
  assert_lacks "$(<both)" "$(printf %s "$digits" | od -An -tx1 | tr -d ' \n')" "what -vv prints"
done

try 0 -k job -v -- true
assert_lacks "$(<err)" ' -> ' "what -v prints"

"$DLOCK" show -vv job >out 2>err || true
(($(exchanges err) > 0)) || [[ $backend == file ]] || fail "show -vv shows no exchange: $(<err)"
"$DLOCK" run -vv --json -k job -- true 2>err
assert_contains "$(<err)" '"level":"trace"' "what -vv --json prints"
