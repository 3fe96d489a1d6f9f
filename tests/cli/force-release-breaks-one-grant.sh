#!/usr/bin/env bash
# ctest: every kind of backend
# "dlock force-release --yes" takes the lock from those it means and from nobody else: their dlocks end
# their commands at once, and say by whom and why, and who waits for the lock gets it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

who="$(id -un) on $(uname -n)"
# breaks STATUS ARGUMENTS...: dlock force-release --yes ARGUMENTS; its pid is left in $breaker.
breaks() {
  local want=$1 got=0
  shift
  "$DLOCK" force-release --yes "$@" >out 2>err </dev/null &
  breaker=$!
  wait "$breaker" || got=$?
  assert_equal "$want/" "$got/$(<out)" "status and stdout of force-release $* ($(<err))"
  assert_equal 1 "$(grep -c '^dlock: ' err)" "lines on stderr ($(<err))"
}
# lives NAME...: these hold their locks, and run.
lives() {
  local name
  for name in "$@"; do
    ! gone "${pid[$name]}" "$(<"$name.pid")" || fail "$name does not run any more: $(<"$name.err")"
    assert_equal '' "$(grep -v ' slots need all of ' "$name.err")" "stderr of $name"
    [[ $("$DLOCK" list -o id,pid) == *"$(head -c 12 "$name.token")  ${pid[$name]}"* ]] ||
      fail "$name holds nothing any more"
  done
}
# is_broken NAME [REASON]: it ends soon, with 79, when its command is gone, and says who did it.
is_broken() {
  local since=${EPOCHREALTIME/./} all
  ends 79 "$1"
  ((${EPOCHREALTIME/./} - since < 5000000)) || fail "$1 took too long to end"
  gone "$(<"$1.pid")" || fail "the command of $1 goes on"
  all="by $who (pid $breaker)${2:+: $2}"
  assert_contains "$(<"$1.err")" "$all" "what $1 says"
  [[ ! -e $1.status ]] || python3 - "$1.status" "$all" <<'PY' || fail "the status file: $(<"$1.status")"
import json, sys
status = json.load(open(sys.argv[1]))
assert (status['outcome'], status['exit_status']) == ('lost', 79)
assert sys.argv[2] in status['reason']
PY
}

# A lock that is free.
breaks 1 job
assert_equal "dlock: \"job\" is free in $location: there is nothing to break" "$(<err)" "a free lock"

# The only holder, with a reason, while somebody waits.
reason=$'the disk is "full"; see OPS-7, \u20ac %s'
holder a -k job --status-file a.status
waiter b job -q
breaks 0 --reason "$reason" job
freed=${EPOCHREALTIME/./}
from="$(id -un) on $(uname -n), pid ${pid[a]} (job)"
[[ $(<err) =~ ^'dlock: broke "job" (held '[0-9.]+m?"s by $from); " ]] ||
  fail "it says: $(<err)"
runs b
((${EPOCHREALTIME/./} - freed < 5000000)) || fail "the waiter did not get the lock at once"
is_broken a "$reason"
lives b

# Whoever is not meant keeps the lock, and what is no command line breaks nothing.
breaks 1 --id "$(head -c 12 a.token)" job
assert_contains "$(<err)" "it does not begin with" "the id of another grant"
assert_contains "$(<err)" "id \"$(head -c 12 b.token)\"" "the id of another grant"
breaks 1 --id "$(head -c 11 b.token)x" job
breaks 1 --older-than 1h job
assert_contains "$(<err)" "no longer than 1h" "a grant that is too young"
breaks 64 --reason $'a\tb' job
assert_contains "$(<err)" "--reason: holds a control character" "a bad reason"
breaks 64 --reason $'\xff' job
breaks 64 --reason "$(printf '%1025s' '')" job
breaks 64 --id '' job
breaks 64 --older-than soon job
breaks 1 Job
lives b
breaks 0 --id "$(head -c 5 b.token)" --older-than 0 job
is_broken b
expect_status 1 "$DLOCK" show job >out
holder a -k job
breaks 0 --id "$(<a.token)" job
is_broken a

# One of several: those that share with it, or have another slot, keep theirs; then all.
for kind in --shared --slots=3; do
  for name in a b c; do holder $name -k job $kind --status-file $name.status; done
  holder d -k other $kind
  breaks 0 --id "$(head -c 12 b.token)" --reason "$reason" job
  is_broken b "$reason"
  lives a c d
  breaks 1 --id "$(head -c 12 b.token)" job
  lives a c d
  got=0
  "$DLOCK" force-release --yes job 2>err || got=$?
  assert_equal '0/2' "$got/$(grep -c '^dlock: broke "job"' err)" "status and lines of breaking two ($(<err))"
  ends 79 a c
  expect_status 1 "$DLOCK" show job >out
  lives d
  finish d
done

# A beginning that fits two means neither.
digits=
while
  name=many${#digits}
  holder "$name" -k job --shared
  digit=$(head -c 1 "$name.token")
  [[ $digits != *$digit* ]]
do digits+=$digit; done
breaks 64 --id "$digit" job
assert_contains "$(<err)" 'is how more than one id begins' "a beginning that fits two"
for ((i = 0; i <= ${#digits}; ++i)); do lives many$i; done
for ((i = 0; i <= ${#digits}; ++i)); do finish many$i; done

# The older ones only.
holder a -k job --shared
older() { [[ $("$DLOCK" list -q -o pid --older-than 2 job) == *"${pid[a]}"* ]]; }
wait_until 30 older
holder b -k job --shared
breaks 0 --older-than 2 job
is_broken a
lives b
finish b
