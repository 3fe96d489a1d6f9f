#!/usr/bin/env bash
# ctest: every backend
# What "dlock acquire" takes is held after it has ended, until "dlock release", the end of its ttl, or the end of
# the process of --while; and nothing is left then.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3
export DLOCK_QUIET=1

mark=dlock-acquire-$$
none_left() { ! grep -qzsxF "MARK=$mark" /proc/[0-9]*/environ; }
# script NAME: a script that does what stands on stdin, and then runs until NAME.go is there.
script() {
  {
    cat
    echo "exec 9<> <(:)
touch $1.held
until [[ -e $1.go ]]; do read -rt 0.02 -u 9 || :; done"
  } >"$1.sh"
  rm -f "$1".{held,go}
  MARK=$mark bash -euo pipefail "$1.sh" 2>"$1.err" &
  pid[$1]=$!
  wait_until 30 lib_runs "$1"
}
# The processes of these scripts, but for the scripts.
keepers() { grep -lzsxF "MARK=$mark" /proc/[0-9]*/environ | cut -d / -f 3 | grep -vx "${pid[one]}" || true; }
no_keepers() { [[ -z $(keepers) ]]; }

# Kept for a process, by two others.
script one <<<"lock=\$(\"$DLOCK\" acquire --export -k job -k other --while \$\$); eval \"\$lock\"
printf '%s\n' \"\$DLOCK_TOKENS\" >one.tokens"
"$DLOCK" show --json job >shown
python3 - "${pid[one]}" "$(head -n 1 one.tokens)" <<'PY'
import json, sys
holder, = json.load(open('shown'))['holders']
assert (holder['kind'], holder['pid'], holder['command']) == ('acquire', int(sys.argv[1]), 'bash'), holder
assert sys.argv[2].startswith(holder['id']), holder
PY
assert_contains "$("$DLOCK" list -o kind)" 'acquire' "the kind of the holder in the list"
assert_contains "$("$DLOCK" show job)" ", pid ${pid[one]}, dlock acquire" "the kind of the holder, in show"
assert_held other
((2 == $(keepers | wc -l))) || fail "$(keepers | wc -l) processes keep the lock"
waiter two job
touch one.go
ends 0 one
runs two
assert_free other
finish two
wait_until 30 none_left

# It gives the lock back before its end, from elsewhere, and goes on.
script one <<<"lock=\$(\"$DLOCK\" acquire --export -k job -k other --while \$\$); eval \"\$lock\"
printf '%s\n' \"\$DLOCK_TOKENS\" >one.tokens"
chmod 600 one.tokens
waiter two job
expect_status 1 "$DLOCK" renew -k job -k other --token-file one.tokens 2>err
assert_contains "$(<err)" '"job" was acquired with --while: dlock renews it until process ' "a renewal"
expect_status 0 "$DLOCK" release -k job -k other --token-file one.tokens
runs two
assert_free other
wait_until 30 no_keepers
! gone "${pid[one]}" || fail "a script that gives its lock back is ended"
expect_status 1 "$DLOCK" release -k other --token-file "$(token_file "$(tail -n 1 one.tokens)")" 2>err
assert_contains "$(<err)" '"other" was not released: this lock id does not hold it any more' "a second release"
touch one.go
ends 0 one
finish two
assert_equal '' "$(<one.err)" "what is said of all that"
wait_until 30 none_left

# A lease that nobody keeps.
if [[ ${trait[ends_on]} != ttl || $backend == *-row ]]; then
  expect_status 64 "$DLOCK" acquire -k job --ttl 5m >out 2>err
  assert_equal '' "$(<out)"
  assert_contains "$(<err)" "the $backend backend cannot keep a lock without a " "a lease on $backend"
  exit 0
fi
MARK=$mark "$DLOCK" acquire -k job -k other --ttl 5m --label build-7 >tokens
chmod 600 tokens
assert_equal 2 "$(grep -cxE '[0-9a-f]{32}(:[0-9]+)?' tokens)" "tokens"
none_left || fail "LEFT BEHIND: a process of a lease that nobody keeps"
"$DLOCK" show --json job >shown
python3 - "$(head -n 1 tokens)" <<'PY'
import json, sys
holder, = json.load(open('shown'))['holders']
assert (holder['kind'], holder['pid'], holder['label']) == ('acquire', None, 'build-7'), holder
assert holder['command'] == 'bash', holder
assert sys.argv[1].startswith(holder['id']), holder
assert 280_000 < holder['expires_in_ms'] <= 300_000, holder
PY
expect_status 75 "$DLOCK" acquire -n -k job --ttl 5m >out 2>err
assert_equal '' "$(<out)"
waiter two job
waiter three other
expect_status 0 "$DLOCK" release -k job -k other --token-file tokens
runs two
runs three
expect_status 1 "$DLOCK" release -k job -k other --token-file tokens 2>err
assert_contains "$(<err)" "\"job\" was not released: this lock id does not hold it any more (released, expired or broken); it is \
held by $(id -un) on $(uname -n), pid ${pid[two]} (job), for " "a second release"
finish two three

# Shared, and in slots, with a number for each.
for kind in --shared --slots=2; do
  "$DLOCK" acquire -k job --ttl 5m "$kind" --json >one.json
  "$DLOCK" acquire -k job --ttl 5m "$kind" --json >two.json
  python3 - "$kind" <<'PY'
import datetime, json, re, sys
now = datetime.datetime.now(datetime.timezone.utc)
one, two = (json.loads(open(name).read()) for name in ('one.json', 'two.json'))
for grant in one, two:
    assert list(grant) == ['key', 'token', 'fence', 'slot', 'expires'] and grant['key'] == 'job', grant
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', grant['expires']), grant
    left = (datetime.datetime.fromisoformat(grant['expires'][:-1] + '+00:00') - now).total_seconds()
    assert 270 < left <= 300, grant
assert two['fence'] > one['fence']
assert [one['slot'], two['slot']] == ([None, None] if sys.argv[1] == '--shared' else [1, 2]), (one, two)
for name, grant in ('one', one), ('two', two):
    open(name + '.token', 'w').write(grant['token'] + '\n')
PY
  chmod 600 one.token two.token
  expect_status 0 "$DLOCK" release -k job --token-file one.token
  assert_equal 1 "$("$DLOCK" show --json job | grep -c '"id"')" "holders after one was released"
  expect_status 0 "$DLOCK" release -k job --token-file two.token
  assert_free job
done

# It expires.
"$DLOCK" acquire -k job --ttl 1s >token
"$DLOCK" run -w 20 -k job -- true
