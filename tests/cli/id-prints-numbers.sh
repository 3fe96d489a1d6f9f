#!/usr/bin/env bash
# ctest: every kind of backend
# What dlock id prints: numbers, one on each line, as text and as JSON.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3
[[ ${trait[ids]} == true ]] || exit 0
export DLOCK_QUIET=1

id() { "$DLOCK" id "$@"; }

# Counters.
assert_equal 1 "$(id --name order)"
assert_equal 2 "$(id --name order --count 1)"
assert_equal '3 4 5' "$(id --name order --count 3 | xargs)"
assert_equal 1 "$(id --name 'Order ü/%')"
assert_equal 6 "$(id --name order)"
id --name order --count 2 --json >out
python3 - "$location" <<'PY'
import json, sys
out = json.load(open('out'))
assert out == {'backend': sys.argv[1], 'name': 'order', 'ids': ['7', '8']}, out
PY

# No variable of the environment, which would be that of another call.
expect_status 64 env DLOCK_NAME=order "$DLOCK" id 2>err
assert_equal 1 "$(DLOCK_COUNT=5 id --name other)"

# Snowflake ids, as they are defined.
id --snowflake --count 10000 >ids
id --snowflake --count 2 --json >out
python3 - "$location" "$(now_ms)" <<'PY'
import json, sys
now = int(sys.argv[2])
ids = [int(line) for line in open('ids')]
assert len(ids) == len(set(ids)) == 10000 and ids == sorted(ids)
begin = 1735689600000  # 2025-01-01T00:00:00Z
start = ids[0] >> 22
worker = ids[0] >> 12 & 1023
assert abs(begin + start - now) < 60_000, (begin + start, now)
for i, number in enumerate(ids):
    assert number == (start + i // 4096) << 22 | worker << 12 | i % 4096, (i, number)
    assert number < 1 << 63
out = json.load(open('out'))
assert out['backend'] == sys.argv[1] and out['name'] is None, out
assert len(out['ids']) == 2 and all(type(i) is str for i in out['ids']), out
assert not {int(i) for i in out['ids']} & set(ids)
PY
assert_equal 7 "$(id --name 'seven' --count 7 | tail -n 1)"

# A million at once.
for what in '--name many' --snowflake; do
  begun=$(now_ms)
  # shellcheck disable=SC2086  # words
  id $what --count 1000000 >many
  took=$(($(now_ms) - begun))
  ((took < 5000)) || fail "a million ids by $what took $took ms"
  assert_equal 1000000 "$(sort -u many | wc -l)" "different ids by $what"
done
assert_equal 1000000 "$(id --name json --count 1000000 --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["ids"]))')"

# What cannot be printed is an error.
if [[ -c /dev/full ]]; then
  expect_status 1 "$DLOCK" id --name order >/dev/full 2>err
  assert_contains "$(<err)" 'standard output: No space left on device'
fi
got=0
{ "$DLOCK" id --name order --count 1000000 || echo $? >status; } | head -n 1 >out
((got=$(<status))) || fail "a closed pipe is no error"
got=0
python3 - <<'PY' || got=$?
import os, signal, subprocess, sys
read, write = os.pipe()
os.close(read)
done = subprocess.run([os.environ['DLOCK'], 'id', '--name', 'order'], stdout=write, stderr=subprocess.PIPE,
                      restore_signals=False)
assert done.returncode == 1 and b'Broken pipe' in done.stderr, done
PY
assert_equal 0 "$got" "a closed pipe where SIGPIPE is ignored"

expect_status 1 "$DLOCK" id --name order >&- 2>err  # it must not land in a socket to the server
assert_contains "$(<err)" 'standard output'

# -vv shows the exchanges.
DLOCK_QUIET=0 id --name order -vv >out 2>err
grep -qE '^dlock: .+ -> .+, [0-9]+\.[0-9] ms$' err || fail "-vv shows no exchange: $(<err)"

# Counters are no locks.
"$DLOCK" list >out 2>err
assert_equal '' "$(<out)" "the list"
expect_status 1 "$DLOCK" show order >out
assert_free order
